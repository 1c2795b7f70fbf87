#include "fcp/pipeline/select_options.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibration/label_selection.h"
#include "fcp/calibration/localized.h"
#include "fcp/calibration/options.h"
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
      if (before > 0 && part.row_size() != to->row_size()) {
        fail(source.row_place(rows.first_row), ": has another size than the rows before it; what ",
             "is chosen needs rows of one size");
      }
      to->shape = part.shape;
      to->shape[0] += before;
      to->values.insert(to->values.end(), part.values.begin(), part.values.end());
    }
  }
  source.rewind();
  return all;
}

// What is left open, and with it whether a slice of the rows is needed.
struct OpenOptions {
  bool cut = false, floor = false, steps = false, temperature = false, rank_term = false;
  bool bandwidth = false, ratio = false;

  bool any() const {
    return cut || floor || steps || temperature || rank_term || bandwidth || ratio;
  }
};

OpenOptions open_options(const CalibrateSettings& settings) {
  const ScoreOptions& score = settings.score;
  const CalibrationOptions& calibration = settings.calibration;
  const OpenValues values = open_values(settings);
  OpenOptions open;
  open.cut = values.cut;
  open.floor = uses_features(score.name) && score.floor > 0;
  open.steps = values.steps;
  open.temperature = values.temperature;
  open.rank_term = values.rank_term;
  open.bandwidth = values.bandwidth;
  open.ratio = calibration.name == "weighted" && settings.shifted != nullptr;
  return open;
}

// The cut and floor or steps are chosen first, then what calibration needs on top of the score that
// they give.
class OptionSelector {
 public:
  OptionSelector(const Graph& network, RowSource& source, const CalibrateSettings& settings,
                 const Context& context)
      : network_(network),
        source_(source),
        settings_(settings),
        context_(context),
        batch_(context.batch_for(source)),
        open_(open_options(settings)) {}

  SelectedOptions select() {
    take_given();
    if (!open_.any()) return std::move(chosen_);
    const size_t rows = count_rows(source_, batch_);
    chosen_.left_out = choose_rows(rows, settings_.selection, context_.seed);
    slice_ = take_masked(source_, chosen_.left_out, true, batch_);
    if (slice_.x.rows() < 10) {
      fail(settings_.data_name, ": what is chosen needs at least 10 rows of its own; ",
           settings_.selection, " of ", rows, " rows are ", slice_.x.rows());
    }
    chosen_.choices.rows = slice_.x.rows();
    if (predicts_labels(chosen_.score.name)) {
      choose_label_options();
    } else if (open_.steps) {
      choose_surrogate_steps();
    } else if (open_.cut || open_.floor) {
      choose_cut();
    }
    if (open_.bandwidth) choose_localization();
    if (open_.ratio) estimate_ratio();
    if (!chosen_.choices.left_out) chosen_.left_out.clear();
    context_.observer->chosen(chosen_.choices);
    return std::move(chosen_);
  }

 private:
  // What the settings say, with the default cut where one is needed.
  void take_given() {
    const ScoreOptions& score = chosen_.score = requested_score(settings_);
    const CalibrationOptions& calibration = chosen_.calibration = requested_calibration(settings_);
    chosen_.choices.score = score.name;
    const bool by_features = uses_features(score.name) || calibration.name == "localized";
    if (const auto* place = std::get_if<std::string>(&settings_.cut)) chosen_.cut = *place;
    if (std::holds_alternative<DefaultCut>(settings_.cut) && by_features) {
      chosen_.cut = default_cut(network_);
    }
  }

  void choose_surrogate_steps() {
    ScoreOptions score = chosen_.score;
    score.steps = 1;
    const ScoredNetwork predictor(network_, score, chosen_.cut, context_.device);
    const Rows rest = take_masked(source_, chosen_.left_out, false, batch_);
    const StepsFolds rows{predictor.features(view(rest.x)), view(rest.y),
                          predictor.features(view(slice_.x)), view(slice_.y)};
    const Level level = score.paper ? Level::fraction(1, 10) : settings_.level;
    const StepsChoice choice = choose_steps(predictor.shared_head(), score, rows, level);
    chosen_.score.steps = choice.steps;
    chosen_.choices.steps = ChosenSteps{choice.steps, choice.coverage.back()};
    // The paper calibrates on these rows too, where nothing else is chosen on them.
    chosen_.choices.left_out = !score.paper || open_.bandwidth || open_.ratio;
  }

  void choose_cut() {
    SelectionOptions options;
    options.level = settings_.level;
    options.device = context_.device;
    if (!open_.cut) {
      options.cuts = {resolve_cut(network_, chosen_.cut)};
      options.scaled = false;
    }
    if (open_.floor || !open_.cut) options.floors = {chosen_.score.floor};
    Stage stage(context_, "choose the cut", 0);
    options.observe = [&](const Candidate&) { stage.advance(1); };
    const Selection selection =
        select_cut(network_, chosen_.score, view(slice_.x), view(slice_.y), options);
    const Candidate& best = selection.candidates[selection.chosen];
    chosen_.cut = best.cut;
    chosen_.score = best.score;
    if (!open_.cut) return;
    chosen_.choices.cut.emplace().chosen = selection.chosen;
    for (const Candidate& one : selection.candidates) {
      chosen_.choices.cut->candidates.push_back(
          {one.cut, one.score.floor, one.length, one.coverage, one.skipped});
    }
  }

  void choose_label_options() {
    ScoreOptions& score = chosen_.score;
    ScoreOptions any = score;
    any.steps = std::max(any.steps, 1);  // the head does not depend on it
    const ScoredNetwork predictor(network_, any, chosen_.cut, context_.device);
    const std::shared_ptr<const Network>& head = predictor.shared_head();
    const LabelledFeatures rows{predictor.features(view(slice_.x)), view(slice_.y)};
    if (open_.temperature) {
      score = choose_temperature(score, head, rows);
      chosen_.choices.temperature = score.temperature;
    }
    if (open_.rank_term) {
      score = choose_rank_term(score, head, rows, settings_.level);
      chosen_.choices.rank_term = ChosenRankTerm{score.rank_weight, score.rank_free};
    }
    if (open_.steps) {
      score = choose_sampled_steps(score, head, rows, settings_.level);
      chosen_.choices.sampled_steps = score.steps;
    }
  }

  void choose_localization() {
    const ScoredNetwork predictor(network_, chosen_.score, chosen_.cut, context_.device);
    const BandwidthChoice choice =
        choose_bandwidth(predictor.score(), predictor.features(view(slice_.x)), view(slice_.y),
                         settings_.level, chosen_.calibration.seed);
    chosen_.calibration.bandwidth = choice.candidates[choice.chosen].bandwidth;
    chosen_.choices.bandwidth.emplace().chosen = choice.chosen;
    for (const BandwidthCandidate& one : choice.candidates) {
      chosen_.choices.bandwidth->candidates.push_back(
          {one.bandwidth, one.loss, one.coverage, one.effective_rows});
    }
  }

  void estimate_ratio() {
    const ScoredNetwork predictor(network_, chosen_.score, chosen_.cut, context_.device);
    const Rows shifted = read_all(*settings_.shifted);
    const auto input = [&](const Rows& rows) {
      const torch::Tensor x = view(rows.x);
      return ratio_input(x, x.dim() == 2 ? x : predictor.features(x));
    };
    chosen_.choices.shifted_rows = shifted.x.rows();
    chosen_.ratio = fit_density_ratio(input(slice_), input(shifted));
  }

  const Graph& network_;
  RowSource& source_;
  const CalibrateSettings& settings_;
  const Context& context_;
  size_t batch_;
  OpenOptions open_;
  Rows slice_;
  SelectedOptions chosen_;
};

}  // namespace

SelectedOptions select_options(const Graph& network, RowSource& source,
                               const CalibrateSettings& settings, const Context& context) {
  return OptionSelector(network, source, settings, context).select();
}

}  // namespace fcp
