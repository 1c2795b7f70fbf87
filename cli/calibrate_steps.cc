// Training and calibration of rows; see steps.h.
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/progress.h"
#include "fcp/base/sha256.h"
#include "fcp/calibration/calibrated_predictor.h"
#include "fcp/calibration/weighted.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/encoding_text.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/report/format.h"
#include "fcp/scores/outputs.h"
#include "fcp/search/surrogate_search.h"

#include "cli/chooser.h"
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

// Collects what calibration keeps of the rows, batch by batch.
class RowCollector {
 public:
  RowCollector(const CalibrateSettings& settings, const Predictor& predictor,
               const DensityRatio& ratio, const RowMask& left_out)
      : settings_(settings), predictor_(predictor), ratio_(ratio), left_out_(left_out) {
    rows_.sides = predictor.score().sides();
    const std::string name = baseline_of(settings.score.name);
    if (name.empty()) return;
    ScoreOptions plain = settings.score;
    plain.name = name;
    plain.asymmetric = false;
    baseline_score_ = make_score(plain, predictor.shared_head());
  }

  void add(const Rows& batch) {
    const torch::Tensor x = view(batch.x), y = view(batch.y);
    const torch::Tensor features = predictor_.features(x);
    const std::vector<double> scores = predictor_.score().score(features, y);
    check_numbers(scores);
    const std::vector<int64_t> kept = kept_rows(batch.x.rows());
    const torch::Tensor rows = torch::tensor(kept, torch::kLong);
    for (const int64_t row : kept) {
      const auto first = scores.begin() + row * rows_.sides;
      rows_.scores.insert(rows_.scores.end(), first, first + rows_.sides);
    }
    if (baseline_score_) {
      const std::vector<double> plain = baseline_score_->score(features, y);
      for (const int64_t row : kept) baseline_.push_back(plain[static_cast<size_t>(row)]);
    }
    add_facts_of(x, y, features, kept, rows);
    if (settings_.score.name == "surrogate") {
      reached_ += count_reached(predictor_, settings_.score, features, y);
    }
    next_ += batch.x.rows();
  }

  // Everything collected, put into `calibrated`.
  void finish(Calibrated& calibrated) {
    if (rows_.count() < 2) {
      fail(settings_.data_name, ": calibration needs at least two rows, found ", rows_.count());
    }
    check_facts(settings_.facts, next_);
    const CalibrationOptions& calibration = settings_.calibration;
    if (calibration.name == "split") sort_sides();
    if (calibration.name == "localized") rows_.features = torch::cat(features_);
    if (calibration.name == "grouped") name_groups();
    calibrated.rows = std::move(rows_);
    calibrated.baseline = sorted_scores(baseline_);
    calibrated.ratio = ratio_;
  }

  size_t seen() const { return next_; }
  size_t reached() const { return reached_; }

 private:
  void check_numbers(const std::vector<double>& scores) const {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (!std::isnan(scores[i])) continue;
      fail(settings_.data_name, ": row ", next_ + i / static_cast<size_t>(rows_.sides),
           " (from 0) has a score that is not a number: the network's answer is NaN there");
    }
  }

  std::vector<int64_t> kept_rows(size_t count) const {
    std::vector<int64_t> kept;
    for (size_t i = 0; i < count; ++i) {
      if (left_out_.empty() || !left_out_[next_ + i]) kept.push_back(static_cast<int64_t>(i));
    }
    return kept;
  }

  void add_facts_of(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& features,
                    const std::vector<int64_t>& kept, const torch::Tensor& rows) {
    const CalibrationOptions& calibration = settings_.calibration;
    const auto count = static_cast<size_t>(x.size(0));
    if (calibration.name == "localized") {
      features_.push_back(features.flatten(1).to(torch::kCPU, torch::kFloat).index_select(0, rows));
    }
    if (calibration.name == "grouped") {
      const std::vector<int64_t> groups = groups_for(y, features, count);
      for (const int64_t row : kept) rows_.groups.push_back(groups[static_cast<size_t>(row)]);
    }
    if (calibration.name == "weighted") {
      if (!ratio_.defined() && settings_.facts.weights.empty()) fail("--weights has no rows");
      const std::vector<double> weights =
          ratio_.defined() ? ratio_.weights(ratio_input(x, features))
                           : given_rows(settings_.facts, 0, next_, count).weights;
      for (const int64_t row : kept) rows_.weights.push_back(weights[static_cast<size_t>(row)]);
    }
  }

  std::vector<int64_t> groups_for(const torch::Tensor& y, const torch::Tensor& features,
                                  size_t count) const {
    const std::string& group = settings_.calibration.group;
    if (group == kByPrediction) {
      return predicted_labels(predictor_, settings_.score.output, features);
    }
    if (group == kByLabel) {
      const torch::Tensor labels = y.to(torch::kLong).flatten().contiguous();
      return {labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel()};
    }
    if (settings_.facts.groups.ids.empty()) fail("--group ", group, " names no rows");
    const auto ids = groups_of(settings_.facts.groups, next_, count);
    return {ids.begin(), ids.end()};
  }

  // Groups that are labels have numbers for names.
  void name_groups() {
    rows_.group_names = settings_.facts.groups.names;
    const std::string& group = settings_.calibration.group;
    if (group != kByPrediction && group != kByLabel) return;
    for (int64_t label = 0; label < predictor_.score().classes(); ++label) {
      rows_.group_names.push_back(std::to_string(label));
    }
  }

  // Each side ascending: all that split calibration needs.
  void sort_sides() {
    std::vector<double> sorted(rows_.scores.size());
    const auto sides = static_cast<size_t>(rows_.sides);
    for (size_t side = 0; side < sides; ++side) {
      const std::vector<double> scores =
          sorted_scores(side_scores(rows_, static_cast<int64_t>(side)));
      for (size_t i = 0; i < scores.size(); ++i) sorted[i * sides + side] = scores[i];
    }
    rows_.scores = std::move(sorted);
  }

  const CalibrateSettings& settings_;
  const Predictor& predictor_;
  const DensityRatio& ratio_;
  const RowMask& left_out_;
  std::unique_ptr<Score> baseline_score_;
  CalibrationRows rows_;
  std::vector<double> baseline_;
  std::vector<torch::Tensor> features_;
  size_t next_ = 0;
  size_t reached_ = 0;
};

void check_settings(const CalibrateSettings& settings, const Predictor& predictor) {
  const CalibrationOptions& calibration = settings.calibration;
  if (calibration.name != "grouped") return;
  const bool by_label = calibration.group == kByPrediction || calibration.group == kByLabel;
  if (calibration.group.empty()) fail("--calibration grouped needs --group");
  if (by_label && predictor.score().classes() == 0) {
    fail("--group ", calibration.group, " is for scores of labels; '", settings.score.name,
         "' is one of intervals");
  }
}

// What a reader of a report wants to know.
std::map<std::string, std::string> provenance_of(const CalibrateSettings& settings,
                                                 const Predictor& predictor,
                                                 const RowCollector& collector, size_t kept,
                                                 uint64_t seed) {
  std::map<std::string, std::string> facts = settings.provenance;
  facts["fcp"] = FCP_VERSION;
  facts["score"] = settings.score.name;
  facts["calibration"] = settings.calibration.name;
  facts["cut"] = predictor.cut().empty() ? "network input" : predictor.cut();
  facts["calibration rows"] = std::to_string(kept);
  facts["rows left out for choices"] = std::to_string(collector.seen() - kept);
  facts["seed"] = std::to_string(seed);
  if (searches_surrogate(settings.score)) facts["steps"] = std::to_string(settings.score.steps);
  return facts;
}

}  // namespace

Calibrated calibrate_rows(const Graph& network, RowSource& source, size_t batch,
                          const CalibrateSettings& asked, torch::Device device,
                          const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  CalibrateSettings settings = asked;
  settings.calibration.paper = settings.score.paper;
  DensityRatio ratio;
  const RowMask left_out = settle(network, source, batch, device, common, settings, ratio);
  const Predictor predictor(network, settings.score, settings.cut, device);
  check_settings(settings, predictor);
  RowCollector collector(settings, predictor, ratio, left_out);
  Sha256 hash;
  Progress progress("calibrate", source.size().value_or(0), !common.quiet);
  for (Rows rows; source.next(batch, rows);) {
    check_interrupted();
    hash.add(bytes_of(rows.x.values));
    hash.add(bytes_of(rows.y.values));
    collector.add(rows);
    progress.advance(rows.x.rows());
  }
  check_interrupted();

  Calibrated calibrated;
  collector.finish(calibrated);
  calibrated.network = network;
  calibrated.score = settings.score;
  calibrated.calibration = settings.calibration;
  calibrated.cut = predictor.cut();
  calibrated.provenance =
      provenance_of(settings, predictor, collector, calibrated.rows.count(), common.seed);
  calibrated.provenance["calibration data sha256"] = hash.hex();
  if (settings.score.name == "surrogate") {
    const double share =
        static_cast<double>(collector.reached()) / static_cast<double>(collector.seen());
    calibrated.provenance["surrogates within 1 % of the truth"] = format_percent(share);
    say(common, concat("surrogate: after ", settings.score.steps, " steps ", format_percent(share),
                       " of the rows predict the truth within 1 %"));
  }
  if (!calibrated.rows.weights.empty()) {
    const std::string rows = format_number(effective_sample_size(calibrated.rows.weights));
    calibrated.provenance["effective sample size"] = rows;
    say(common,
        concat("weights: ", calibrated.rows.count(), " rows are worth ", rows, " unweighted ones"));
  }
  Sha256 model;
  model.add(serialize_onnx(network));
  calibrated.provenance["network sha256"] = model.hex();
  if (!source.target_names().empty()) calibrated.provenance["target"] = join(source.target_names());
  return calibrated;
}

}  // namespace fcp
