#include "fcp/pipeline/method_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibration/kept_levels.h"
#include "fcp/pipeline/answers.h"

namespace fcp {
namespace {

torch::Tensor to_host(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kDouble).contiguous();
}

std::vector<double> to_numbers(const torch::Tensor& tensor) {
  const torch::Tensor plain = to_host(tensor);
  const std::span<const double> values = numbers(plain);
  return {values.begin(), values.end()};
}

}  // namespace

void MethodBatch::pack(Packer& packer) const {
  for (const auto* list : {&prediction, &lower, &upper, &scores, &p_values}) packer.add(*list);
  packer.add(within);
  packer.add(detected);
  packer.add(rows);
}

MethodBatch MethodBatch::unpack(Unpacker& unpacker) {
  MethodBatch batch;
  for (auto* list :
       {&batch.prediction, &batch.lower, &batch.upper, &batch.scores, &batch.p_values}) {
    *list = unpacker.numbers<double>();
  }
  batch.within = unpacker.numbers<uint64_t>();
  batch.detected = unpacker.number();
  batch.rows = unpacker.number();
  return batch;
}

std::vector<Level> curve_levels() {
  std::vector<Level> levels;
  for (uint64_t percent = 2; percent <= 50; percent += 2) {
    levels.push_back(Level::fraction(percent, 100));
  }
  return levels;
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

torch::Tensor round_outward(const torch::Tensor& end, bool down) {
  const torch::Tensor rounded = end.to(torch::kFloat);
  const torch::Tensor limit =
      torch::full_like(rounded, down ? -std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::infinity());
  const torch::Tensor wrong =
      down ? rounded.to(torch::kDouble) > end : rounded.to(torch::kDouble) < end;
  return torch::where(wrong, torch::nextafter(rounded, limit), rounded);
}

std::span<const double> numbers(const torch::Tensor& tensor) {
  return {tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel())};
}

std::vector<bool> within_radii(const TensorPredictor& predictor, const TestInputs& rows,
                               const torch::Tensor& truth, const std::vector<double>& scores,
                               const Level& level, bool strict) {
  torch::Tensor radii = to_host(predictor.calibration().radii(rows, level));  // [N, S] or [N, C]
  const int64_t sides = predictor.score().sides();
  if (predictor.score().classes() > 0 && radii.size(1) > 1) {
    radii = radii.gather(1, truth.to(torch::kCPU, torch::kLong).reshape({-1, 1})).contiguous();
  }
  const std::span<const double> limits = numbers(radii);
  std::vector<bool> in(scores.size() / static_cast<size_t>(sides), true);
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool within = strict ? scores[i] < limits[i] : scores[i] <= limits[i];
    if (!within) in[i / static_cast<size_t>(sides)] = false;
  }
  return in;
}

std::vector<uint64_t> count_within(const CalibrationArtifact& artifact,
                                   const TensorPredictor& predictor, const TestInputs& rows,
                                   const torch::Tensor& truth, const std::vector<double>& scores) {
  std::vector<uint64_t> counts;
  for (const Level& level : artifact.rows.levels) {
    const std::vector<bool> in = within_radii(predictor, rows, truth, scores, level, false);
    counts.push_back(static_cast<uint64_t>(std::count(in.begin(), in.end(), true)));
  }
  return counts;
}

void add_counts(std::vector<uint64_t>& sums, std::span<const uint64_t> counts) {
  sums.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
}

std::vector<CurvePoint> curve_of_levels(const CalibrationArtifact& artifact,
                                        std::span<const uint64_t> sums, size_t rows) {
  std::vector<CurvePoint> curve;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Level& level = artifact.rows.levels[i];
    const std::vector<double> radius = artifact.radius(level);
    curve.push_back({level, radius.size() == 1 ? std::optional(radius[0]) : std::nullopt,
                     coverage_of(sums[i], rows)});
  }
  return curve;
}

Conformity judge_rows(const TensorPredictor& predictor, const TestInputs& rows,
                      const torch::Tensor& truth, bool p_values) {
  if (p_values) return predictor.judge(rows, truth);
  return {predictor.score().score(rows.features, truth), {}};
}

MethodStream::MethodStream(const CalibrationArtifact& artifact, const TensorPredictor& predictor,
                           const RowSource& source, const Level& level,
                           std::vector<std::string> group_names)
    : artifact_(artifact),
      predictor_(predictor),
      source_(source),
      level_(level),
      group_names_(std::move(group_names)) {}

bool MethodStream::one_radius() const {
  return artifact_.calibration.name == "split" && artifact_.rows.sides == 1;
}

MethodBatch MethodStream::measure(const TestInputs& rows, size_t first_row,
                                  const torch::Tensor& truth) const {
  const Regions regions = predictor_.region(rows, level_);
  check_answers(regions, source_, first_row);
  MethodBatch batch;
  batch.prediction = to_numbers(regions.prediction);
  batch.lower = to_numbers(regions.lower);
  batch.upper = to_numbers(regions.upper);
  const Conformity judged = judge_rows(predictor_, rows, truth, all_scores() && !one_radius());
  batch.rows = static_cast<uint64_t>(truth.size(0));
  batch.p_values = judged.p_values;
  batch.within = count_within(artifact_, predictor_, rows, truth, judged.scores);
  if (all_scores() && one_radius()) batch.scores = judged.scores;
  for (const bool in :
       within_radii(predictor_, rows, truth, judged.scores, level_, artifact_.score.paper)) {
    batch.detected += in ? 1 : 0;
  }
  return batch;
}

void MethodStream::take(const MethodBatch& batch, std::span<const double> truth,
                        std::span<const int64_t> groups) {
  if (!evaluator_) {
    evaluator_.emplace(batch.outputs(),
                       IntervalEvaluationOptions{.level = level_, .group_names = group_names_});
  }
  evaluator_->add({.lower = batch.lower, .upper = batch.upper, .truth = truth, .groups = groups});
  p_values_.insert(p_values_.end(), batch.p_values.begin(), batch.p_values.end());
  scores_.insert(scores_.end(), batch.scores.begin(), batch.scores.end());
  add_counts(within_, batch.within);
  detected_ += batch.detected;
  rows_ += batch.rows;
}

MethodResult MethodStream::finish() const {
  if (!evaluator_) fail("the data has no rows to evaluate");
  MethodResult result;
  result.name = artifact_.score.name;
  result.evaluation = evaluator_->finish();
  if (one_radius()) result.radius = artifact_.radius(level_)[0];
  if (!all_scores()) {
    result.curve = curve_of_levels(artifact_, within_, rows_);
  } else if (one_radius()) {
    result.scores = artifact_.rows.scores;
    result.curve = coverage_curve(artifact_.rows.scores, scores_, curve_levels());
  } else {
    result.curve = coverage_curve(p_values_, curve_levels());
  }
  result.guaranteed = obeys_law(artifact_.score);
  if (!result.guaranteed) result.detection = coverage_of(detected_, rows_);
  return result;
}

}  // namespace fcp
