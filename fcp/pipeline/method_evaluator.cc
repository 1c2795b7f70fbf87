#include "fcp/pipeline/method_evaluator.h"

#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibration/kept_levels.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/coverage_counts.h"
#include "fcp/pipeline/segmentation_rows.h"

namespace fcp {
namespace {

std::vector<Level> asked_levels(const EvaluatedMethod& method) {
  if (!method.main || !method.options.all_levels) return {};
  return slider_levels(method.artifact, method.options.level);
}

}  // namespace

MethodEvaluator::MethodEvaluator(const EvaluatedMethod& method)
    : method_(method),
      levels_(asked_levels(method)),
      radii_(one_radius() && all_scores() ? curve_radii(method.artifact.rows.scores, curve_levels())
                                          : std::vector<double>()),
      level_sums_(levels_.size()) {}

LevelSums MethodEvaluator::sums_at(const Rows&, const Regions&) const { return {}; }

void MethodEvaluator::measure_levels(const TestInputs& inputs, const Rows& rows,
                                     MeasuredRegions& measured, Packer& packer) const {
  if (!has_curve()) return;
  for (const Level& level : levels_) {
    Regions regions =
        level == method_.options.level ? measured.regions : method_.predictor.region(inputs, level);
    packer.add(pack_sums(sums_at(rows, regions)));
    measured.at_levels.push_back(std::move(regions));
  }
}

// The report's own level says what the evaluation says, to the last bit.
void MethodEvaluator::finish_levels(MethodResult& result) const {
  if (!has_curve()) return;
  for (size_t i = 0; i < levels_.size(); ++i) {
    LevelResult at = level_sums_[i].result(levels_[i]);
    if (at.level == method_.options.level) {
      const auto* intervals = std::get_if<IntervalEvaluation>(&result.evaluation);
      at.coverage = result.coverage();
      at.size = intervals ? intervals->length.mean : result.sets().mean_size;
    }
    result.levels.push_back(at);
  }
}

std::optional<double> MethodEvaluator::length(const Regions&, size_t) const { return std::nullopt; }

bool MethodEvaluator::one_radius() const {
  return method_.artifact.calibration.name == "split" && method_.artifact.rows.sides == 1;
}

MeasuredRegions MethodEvaluator::measure(const TestInputs& inputs, const Rows& rows,
                                         Packer& packer) const {
  const CalibrationArtifact& artifact = method_.artifact;
  const TensorPredictor& predictor = method_.predictor;
  MeasuredRegions measured{predictor.region(inputs, method_.options.level), {}};
  check_answers(measured.regions, method_.source, rows.first_row);
  packer.add(uint64_t{rows.x.rows()});
  measure_regions(inputs, rows, measured.regions, packer);
  measure_levels(inputs, rows, measured, packer);
  if (!has_curve() && obeys_law(artifact.score)) return measured;
  const torch::Tensor truth = truth_of(rows);
  const Conformity judged =
      judge_rows(predictor, inputs, truth, has_curve() && all_scores() && !by_scores());
  packer.add(has_curve() ? count_batch(inputs, truth, judged) : std::vector<uint64_t>());
  uint64_t detected = 0;
  for (const bool in : within_radii(predictor, inputs, truth, judged.scores, method_.options.level,
                                    artifact.score.paper)) {
    detected += in ? 1 : 0;
  }
  packer.add(detected);
  return measured;
}

std::vector<uint64_t> MethodEvaluator::count_batch(const TestInputs& inputs,
                                                   const torch::Tensor& truth,
                                                   const Conformity& all) const {
  Conformity judged = all;
  // No radius takes a label that is none of the classes: such rows count as rows alone.
  const std::vector<bool> foreign = foreign_labels(method_.predictor.score(), truth);
  for (std::vector<double>* numbers : {&judged.scores, &judged.p_values}) {
    if (foreign.empty() || numbers->size() != foreign.size() || !all_scores()) continue;
    std::vector<double> kept;
    for (size_t i = 0; i < foreign.size(); ++i) {
      if (!foreign[i]) kept.push_back((*numbers)[i]);
    }
    *numbers = std::move(kept);
  }
  if (!all_scores()) {
    return count_within(method_.artifact, method_.predictor, inputs, truth, judged.scores);
  }
  return by_scores() ? count_scores(judged.scores, radii_)
                     : count_p_values(judged.p_values, curve_levels());
}

void MethodEvaluator::take(Unpacker& unpacker, std::span<const int64_t> groups) {
  rows_ += unpacker.number();
  take_regions(unpacker, groups);
  for (size_t i = 0; has_curve() && i < levels_.size(); ++i) {
    level_sums_[i].add(unpack_sums(unpacker.numbers<double>()));
  }
  if (!has_curve() && obeys_law(method_.artifact.score)) return;
  add_counts(within_, unpacker.numbers<uint64_t>());
  detected_ += unpacker.number();
}

MethodResult MethodEvaluator::finish() const {
  if (rows_ == 0) fail("the data has no rows to evaluate");
  const CalibrationArtifact& artifact = method_.artifact;
  MethodResult result;
  result.name = artifact.score.name;
  finish_regions(result);
  finish_levels(result);
  if (one_radius()) result.radius = artifact.radius(method_.options.level)[0];
  if (has_curve()) {
    if (one_radius() && all_scores()) result.scores = artifact.rows.scores;
    result.curve = !all_scores() ? curve_of_levels(artifact, within_, rows_)
                                 : curve_of_counts(curve_levels(),
                                                   by_scores() ? radii_ : std::vector<double>(),
                                                   within_, rows_);
  }
  result.guaranteed = obeys_law(artifact.score);
  if (!result.guaranteed) result.detection = coverage_of(detected_, rows_);
  return result;
}

std::unique_ptr<MethodEvaluator> make_evaluator(const EvaluatedMethod& method) {
  if (dynamic_cast<const SegmentationRows*>(&method.source)) return make_pixel_evaluator(method);
  if (predicts_labels(method.artifact.score.name)) return make_label_evaluator(method);
  return make_interval_evaluator(method);
}

std::optional<CalibrationArtifact> baseline_predictor(const CalibrationArtifact& artifact) {
  const std::string name = baseline_of(artifact.score.name);
  const CalibrationScores& rows = artifact.rows;
  // Where all radii are infinite, levels keep nothing of it.
  const bool empty_list = !rows.levels.empty() && SideRanks{rows.total}.ranks(rows.levels).empty();
  if (name.empty() || (artifact.baseline.empty() && !empty_list)) return std::nullopt;
  CalibrationArtifact plain;
  plain.network = artifact.network;
  plain.cut = artifact.cut;
  plain.score = artifact.score;
  plain.score.name = name;
  plain.score.asymmetric = false;
  plain.score.paper = false;
  plain.score.rectifier.clear();
  plain.rows.scores = artifact.baseline;
  plain.rows.levels = rows.levels;
  plain.rows.total = rows.total;
  return plain;
}

}  // namespace fcp
