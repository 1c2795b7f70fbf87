// Training and calibration of rows; see steps.h.
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/progress.h"
#include "fcp/base/random.h"
#include "fcp/base/sha256.h"
#include "fcp/calibration/predictor.h"
#include "fcp/calibration/selection.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/encoding_text.h"
#include "fcp/network/cut.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/report/format.h"
#include "fcp/report/table.h"
#include "fcp/scores/outputs.h"
#include "fcp/search/surrogate_search.h"

#include "cli/steps.h"

namespace fcp {
namespace {

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

TrainResult train_rows(RowSource& source, const TrainOptions& options,
                       const CommonOptions& common) {
  const Rows rows = read_all(source);
  Progress progress(
      "train", static_cast<size_t>(most_train_steps(static_cast<int64_t>(rows.x.rows()), options)),
      !common.quiet);
  TrainResult result = train_network(rows.x, rows.y, options, [&](const TrainStep& step) {
    progress.advance(1, [&] {
      return concat(step.fit.refit ? "refit, epoch " : "epoch ", step.fit.epoch, ", loss ",
                    step.fit.loss);
    });
  });
  if (source.encoding() != nullptr) {
    result.graph.metadata[kEncodingKey] = encoding_text(*source.encoding());
  }
  if (!source.target_names().empty()) {
    result.graph.metadata[kTargetsKey] = nlohmann::json(source.target_names()).dump();
  }
  return result;
}

namespace {

// Rows by number: which ones are set aside for choices. Empty: none.
using RowMask = std::vector<bool>;

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

// Settles the cut, the floor and the number of steps; fills `mask` with the rows this looked at.
class Chooser {
 public:
  Chooser(const Graph& network, RowSource& source, size_t batch, torch::Device device,
          const CommonOptions& common)
      : network_(network), source_(source), batch_(batch), device_(device), common_(common) {}

  RowMask choose(CalibrateSettings& settings) {
    ScoreOptions& score = settings.score;
    if (!uses_features(score.name)) return {};
    const bool cut_open = settings.cut == "auto";
    const bool steps_open = score.name == "surrogate" && score.steps == 0;
    if (settings.cut.empty()) settings.cut = default_cut(network_);
    if (!cut_open && !steps_open && score.floor == 0) return {};
    const size_t rows = count_rows(source_, batch_);
    const RowMask mask = choose_rows(rows, settings.selection_share, common_.seed);
    const Rows slice = take_masked(source_, mask, true, batch_);
    if (slice.x.rows() < 10) {
      fail(settings.data_name,
           ": choosing the cut, floor or steps needs at least 10 rows of its own; ",
           settings.selection_share, " of ", rows, " rows are ", slice.x.rows());
    }
    if (steps_open) {
      choose_surrogate_steps(settings, slice, mask);
      return score.paper ? RowMask() : mask;
    }
    choose_cut(settings, slice, cut_open);
    return mask;
  }

 private:
  void choose_surrogate_steps(CalibrateSettings& settings, const Rows& slice, const RowMask& mask) {
    ScoreOptions score = settings.score;
    score.steps = 1;
    const Predictor predictor(network_, score, settings.cut, device_);
    const Rows rest = take_masked(source_, mask, false, batch_);
    const StepsRows rows{predictor.features(view(rest.x)), view(rest.y),
                         predictor.features(view(slice.x)), view(slice.y)};
    const Level level = score.paper ? Level::fraction(1, 10) : settings.level;
    const StepsChoice choice = choose_steps(predictor.shared_head(), score, rows, level);
    settings.score.steps = choice.steps;
    say(common_,
        concat("surrogate: ", choice.steps, " steps, bands cover ",
               format_percent(choice.coverage.back()), " of ", slice.x.rows(), " validation rows",
               score.paper ? " (the paper's habit: they are calibrated on as well)"
                           : ", which are left out of calibration"));
  }

  void choose_cut(CalibrateSettings& settings, const Rows& slice, bool cut_open) {
    SelectionOptions options;
    options.level = settings.level;
    options.device = device_;
    if (!cut_open) options.cuts = {resolve_cut(network_, settings.cut)};
    if (settings.score.floor > 0 || !cut_open) options.floors = {settings.score.floor};
    Progress progress("choose the cut", 0, !common_.quiet);
    options.observe = [&](const Candidate&) { progress.advance(1); };
    const Selection selection =
        select_cut(network_, settings.score, view(slice.x), view(slice.y), options);
    const Candidate& chosen = selection.candidates[selection.chosen];
    settings.cut = chosen.cut;
    settings.score = chosen.score;
    if (cut_open) tell_candidates(selection, slice.x.rows());
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
    say(common_, concat("Cuts and floors on ", rows,
                        " selection rows, which are left out of calibration:\n", table.text(2)));
  }

  const Graph& network_;
  RowSource& source_;
  size_t batch_;
  torch::Device device_;
  const CommonOptions& common_;
};

// The paper's check of its search: rows whose surrogate feature predicts y with an error of less
// than 1 % of ‖y‖.
size_t count_reached(const Predictor& predictor, const ScoreOptions& score,
                     const torch::Tensor& features, const torch::Tensor& truth) {
  const SurrogateSearch search(
      predictor.shared_head(), output_index(*predictor.shared_head(), score.output),
      {.rate = score.step_rate, .adam = score.adam, .weights = score.loss_weights});
  const torch::Tensor found = search.walk(features, truth, score.steps);
  const torch::Tensor size = truth.to(torch::kDouble).flatten(1).square().sum(1);
  const torch::Tensor error = search.error(found, truth).to(torch::kCPU, torch::kDouble);
  return static_cast<size_t>((error < 1e-4 * size).sum().item<int64_t>());
}

}  // namespace

Calibrated calibrate_rows(const Graph& network, RowSource& source, size_t batch,
                          const CalibrateSettings& asked, torch::Device device,
                          const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  CalibrateSettings settings = asked;
  const RowMask left_out = Chooser(network, source, batch, device, common).choose(settings);
  const Predictor predictor(network, settings.score, settings.cut, device);
  ScoreOptions residual = settings.score;
  residual.name = "residual";
  const std::unique_ptr<Score> baseline = make_score(residual, predictor.shared_head());

  std::vector<double> scores;
  std::vector<double> residuals;
  Sha256 hash;
  Rows rows;
  size_t next = 0;
  size_t reached = 0;
  Progress progress("calibrate", source.size().value_or(0), !common.quiet);
  while (source.next(batch, rows)) {
    check_interrupted();
    hash.add(bytes_of(rows.x.values));
    hash.add(bytes_of(rows.y.values));
    const torch::Tensor features = predictor.features(view(rows.x));
    const std::vector<double> more = predictor.score().score(features, view(rows.y));
    const std::vector<double> distances = baseline->score(features, view(rows.y));
    if (settings.score.name == "surrogate") {
      reached += count_reached(predictor, settings.score, features, view(rows.y));
    }
    for (size_t i = 0; i < more.size(); ++i, ++next) {
      if (std::isnan(more[i])) {
        fail(settings.data_name, ": row ", next,
             " (from 0) has a score that is not a number: the network's "
             "answer is NaN there");
      }
      if (!left_out.empty() && left_out[next]) continue;
      scores.push_back(more[i]);
      residuals.push_back(distances[i]);
    }
    progress.advance(rows.x.rows());
  }
  check_interrupted();
  if (scores.size() < 2) {
    fail(settings.data_name, ": calibration needs at least two rows, found ", scores.size());
  }

  Calibrated calibrated;
  calibrated.network = network;
  calibrated.score = settings.score;
  calibrated.cut = predictor.cut();
  calibrated.scores = sorted_scores(scores);
  calibrated.residuals = sorted_scores(residuals);
  calibrated.provenance = settings.provenance;
  calibrated.provenance["fcp"] = FCP_VERSION;
  calibrated.provenance["score"] = settings.score.name;
  calibrated.provenance["cut"] = predictor.cut().empty() ? "network input" : predictor.cut();
  calibrated.provenance["calibration rows"] = std::to_string(scores.size());
  calibrated.provenance["rows left out for choices"] = std::to_string(next - scores.size());
  calibrated.provenance["calibration data sha256"] = hash.hex();
  calibrated.provenance["seed"] = std::to_string(common.seed);
  if (settings.score.name == "surrogate") {
    const double share = static_cast<double>(reached) / static_cast<double>(next);
    calibrated.provenance["steps"] = std::to_string(settings.score.steps);
    calibrated.provenance["surrogates within 1 % of the truth"] = format_percent(share);
    say(common, concat("surrogate: after ", settings.score.steps, " steps ", format_percent(share),
                       " of the rows predict the truth within 1 %"));
  }
  Sha256 model;
  model.add(serialize_onnx(network));
  calibrated.provenance["network sha256"] = model.hex();
  if (!source.target_names().empty()) calibrated.provenance["target"] = join(source.target_names());
  return calibrated;
}

}  // namespace fcp
