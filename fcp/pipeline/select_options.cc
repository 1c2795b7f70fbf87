#include "fcp/pipeline/select_options.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/number_text.h"
#include "fcp/base/random.h"
#include "fcp/base/text_table.h"
#include "fcp/calibration/label_selection.h"
#include "fcp/calibration/localized.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/calibration/selection.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/network/cut.h"

namespace fcp {
namespace {

size_t count_rows(RowSource& source, size_t batch) {
  if (source.size()) return *source.size();
  size_t count = 0;
  for (Rows rows; source.next(batch, rows);) count += rows.x.rows();
  source.rewind();
  return count;
}

RowMask choose_rows(size_t rows, double share, uint64_t seed) {
  RowMask mask(rows, false);
  const std::vector<size_t> order = Random(seed).permutation(rows);
  const auto count = static_cast<size_t>(static_cast<double>(rows) * share);
  for (size_t i = 0; i < count; ++i) mask[order[i]] = true;
  return mask;
}

// The rows of the whole source whose mask is `wanted`, in memory.
Rows take_masked(RowSource& source, const RowMask& mask, bool wanted, size_t batch) {
  Rows all;
  size_t next = 0;
  for (Rows rows; source.next(batch, rows);) {
    std::vector<size_t> indices;
    for (size_t i = 0; i < rows.x.rows(); ++i) {
      if (mask[next + i] == wanted) indices.push_back(i);
    }
    next += rows.x.rows();
    for (auto [to, from] : {std::pair(&all.x, &rows.x), std::pair(&all.y, &rows.y)}) {
      const Array part = take_rows(*from, indices);
      const int64_t before = to->shape.empty() ? 0 : to->shape[0];
      to->shape = part.shape;
      to->shape[0] += before;
      to->values.insert(to->values.end(), part.values.begin(), part.values.end());
    }
  }
  source.rewind();
  return all;
}

// The last of the rows' options are settled first: cut and floor or steps, then what calibration
// needs on top of the score they give.
class Chooser {
 public:
  Chooser(const Graph& network, RowSource& source, const Context& context)
      : network_(network),
        source_(source),
        batch_(context.batch_for(source)),
        device_(context.device),
        context_(context) {}

  RowMask choose(CalibrateSettings& settings, DensityRatio& ratio) {
    const ScoreOptions& score = settings.score;
    const CalibrationOptions& calibration = settings.calibration;
    const bool by_features = uses_features(score.name);
    const bool localized = calibration.name == "localized";
    if (settings.cut.empty() && (by_features || localized)) settings.cut = default_cut(network_);
    const bool cut_open = settings.cut == "auto";
    if (cut_open && !by_features) {
      fail("--cut auto is for scores in feature space; '", score.name, "' is not one");
    }
    const bool steps_open = searches_surrogate(score) && score.steps == 0;
    const bool widened = by_features && score.floor > 0;
    const bool bandwidth_open = localized && calibration.bandwidth == 0;
    const bool labels_open = settings.choose_temperature || settings.choose_rank_term;
    const bool ratio_open = calibration.name == "weighted" && settings.shifted != nullptr;
    if (cut_open && predicts_labels(score.name)) {
      fail("--cut auto compares lengths of intervals; '", score.name, "' is a score of labels");
    }
    if (!cut_open && !steps_open && !widened && !bandwidth_open && !ratio_open && !labels_open) {
      return {};
    }

    const size_t rows = count_rows(source_, batch_);
    const RowMask mask = choose_rows(rows, settings.selection_share, context_.seed);
    const Rows slice = take_masked(source_, mask, true, batch_);
    if (slice.x.rows() < 10) {
      fail(settings.data_name, ": what is chosen needs at least 10 rows of its own; ",
           settings.selection_share, " of ", rows, " rows are ", slice.x.rows());
    }
    if (predicts_labels(score.name)) {
      choose_label_options(settings, slice, steps_open);
    } else if (steps_open) {
      choose_surrogate_steps(settings, slice, mask);
      if (score.paper && !bandwidth_open && !ratio_open) return {};
    } else if (cut_open || widened) {
      choose_cut(settings, slice, cut_open);
    }
    if (bandwidth_open) choose_localization(settings, slice);
    if (ratio_open) ratio = estimate_ratio(settings, slice);
    return mask;
  }

 private:
  void choose_surrogate_steps(CalibrateSettings& settings, const Rows& slice, const RowMask& mask) {
    ScoreOptions score = settings.score;
    score.steps = 1;
    const ScoredNetwork predictor(network_, score, settings.cut, device_);
    const Rows rest = take_masked(source_, mask, false, batch_);
    const StepsFolds rows{predictor.features(view(rest.x)), view(rest.y),
                          predictor.features(view(slice.x)), view(slice.y)};
    const Level level = score.paper ? Level::fraction(1, 10) : settings.level;
    const StepsChoice choice = choose_steps(predictor.shared_head(), score, rows, level);
    settings.score.steps = choice.steps;
    context_.observer->note(
        concat("surrogate: ", choice.steps, " steps, bands cover ",
               format_percent(choice.coverage.back()), " of ", slice.x.rows(), " validation rows",
               score.paper ? " (the paper's habit: they are calibrated on as well)"
                           : ", which are left out of calibration"));
  }

  void choose_cut(CalibrateSettings& settings, const Rows& slice, bool cut_open) {
    SelectionOptions options;
    options.level = settings.level;
    options.device = device_;
    if (!cut_open) {
      options.cuts = {resolve_cut(network_, settings.cut)};
      options.scaled = false;
    }
    if (settings.score.floor > 0 || !cut_open) options.floors = {settings.score.floor};
    Stage stage(context_, "choose the cut", 0);
    options.observe = [&](const Candidate&) { stage.advance(1); };
    const Selection selection =
        select_cut(network_, settings.score, view(slice.x), view(slice.y), options);
    const Candidate& chosen = selection.candidates[selection.chosen];
    settings.cut = chosen.cut;
    settings.score = chosen.score;
    if (cut_open) tell_candidates(selection, slice.x.rows());
  }

  void choose_label_options(CalibrateSettings& settings, const Rows& slice, bool steps_open) {
    ScoreOptions& score = settings.score;
    ScoreOptions any = score;
    any.steps = std::max(any.steps, 1);  // the head does not depend on it
    const ScoredNetwork predictor(network_, any, settings.cut, device_);
    const std::shared_ptr<const Network>& head = predictor.shared_head();
    const LabelledFeatures rows{predictor.features(view(slice.x)), view(slice.y)};
    std::string chosen;
    if (settings.choose_temperature) {
      score = choose_temperature(score, head, rows);
      chosen += concat(", temperature ", format_number(score.temperature));
    }
    if (settings.choose_rank_term) {
      score = choose_rank_term(score, head, rows, settings.level);
      chosen +=
          concat(", ranks beyond ", score.rank_free, " cost ", format_number(score.rank_weight));
    }
    if (steps_open) {
      score = choose_sampled_steps(score, head, rows, settings.level);
      chosen += concat(", ", score.steps, " steps");
    }
    if (!chosen.empty()) {
      context_.observer->note(concat(score.name, chosen, ": chosen on ", slice.x.rows(),
                                     " rows, which are left out of calibration"));
    }
  }

  void choose_localization(CalibrateSettings& settings, const Rows& slice) {
    const ScoredNetwork predictor(network_, settings.score, settings.cut, device_);
    const BandwidthChoice choice =
        choose_bandwidth(predictor.score(), predictor.features(view(slice.x)), view(slice.y),
                         settings.level, settings.calibration.seed);
    settings.calibration.bandwidth = choice.candidates[choice.chosen].bandwidth;
    Table table({"bandwidth", "loss", "coverage", "effective rows", ""});
    for (size_t i = 0; i < choice.candidates.size(); ++i) {
      const BandwidthCandidate& candidate = choice.candidates[i];
      table.add_row({format_number(candidate.bandwidth), format_number(candidate.loss),
                     format_percent(candidate.coverage), format_number(candidate.effective_rows, 3),
                     i == choice.chosen ? "chosen" : ""});
    }
    context_.observer->note(concat("Bandwidths on ", slice.x.rows(),
                                   " selection rows, which are left out of calibration:\n",
                                   table.text(2)));
  }

  DensityRatio estimate_ratio(const CalibrateSettings& settings, const Rows& slice) {
    const ScoredNetwork predictor(network_, settings.score, settings.cut, device_);
    const Rows shifted = read_all(*settings.shifted);
    const auto input = [&](const Rows& rows) {
      const torch::Tensor x = view(rows.x);
      return ratio_input(x, x.dim() == 2 ? x : predictor.features(x));
    };
    context_.observer->note(concat("likelihood ratio: ", slice.x.rows(),
                                   " selection rows, which are left out of calibration, against ",
                                   shifted.x.rows(), " shifted rows"));
    return fit_density_ratio(input(slice), input(shifted));
  }

  void tell_candidates(const Selection& selection, size_t rows) {
    Table table({"cut", "floor", "length", "coverage", ""});
    for (size_t i = 0; i < selection.candidates.size(); ++i) {
      const Candidate& candidate = selection.candidates[i];
      if (!candidate.skipped.empty()) {
        table.add_row({candidate.cut, "", "", "", "skipped: " + candidate.skipped});
        continue;
      }
      table.add_row({candidate.cut, format_number(candidate.score.floor),
                     format_number(candidate.length), format_percent(candidate.coverage),
                     i == selection.chosen ? "chosen" : ""});
    }
    context_.observer->note(concat("Cuts and floors on ", rows,
                                   " selection rows, which are left out of calibration:\n",
                                   table.text(2)));
  }

  const Graph& network_;
  RowSource& source_;
  size_t batch_;
  torch::Device device_;
  const Context& context_;
};

}  // namespace

RowMask settle(const Graph& network, RowSource& source, const Context& context,
               CalibrateSettings& settings, DensityRatio& ratio) {
  return Chooser(network, source, context).choose(settings, ratio);
}

}  // namespace fcp
