#include "cli/method_stream.h"

#include <limits>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

torch::Tensor to_host(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kDouble).contiguous();
}

}  // namespace

std::vector<Level> curve_levels() {
  std::vector<Level> levels;
  for (uint64_t percent = 2; percent <= 50; percent += 2) {
    levels.push_back(Level::fraction(percent, 100));
  }
  return levels;
}

std::optional<Calibrated> baseline_predictor(const Calibrated& calibrated) {
  const std::string name = baseline_of(calibrated.score.name);
  if (name.empty() || calibrated.baseline.empty()) return std::nullopt;
  Calibrated plain;
  plain.network = calibrated.network;
  plain.cut = calibrated.cut;
  plain.score = calibrated.score;
  plain.score.name = name;
  plain.score.asymmetric = false;
  plain.score.paper = false;
  plain.rows.scores = calibrated.baseline;
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

std::vector<bool> within_radii(const CalibratedPredictor& predictor, const NewRows& rows,
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

MethodStream::MethodStream(const Calibrated& calibrated, const CalibratedPredictor& predictor,
                           const Level& level, std::vector<std::string> group_names)
    : calibrated_(calibrated),
      predictor_(predictor),
      level_(level),
      group_names_(std::move(group_names)) {}

Regions MethodStream::add(const NewRows& rows, const torch::Tensor& truth,
                          std::span<const int64_t> groups) {
  Regions regions = predictor_.region(rows, level_);
  regions = {to_host(regions.prediction), to_host(regions.lower), to_host(regions.upper), {}};
  if (!evaluator_) {
    evaluator_.emplace(static_cast<size_t>(regions.prediction.size(1)),
                       IntervalEvaluationOptions{.level = level_, .group_names = group_names_});
  }
  evaluator_->add({.lower = numbers(regions.lower),
                   .upper = numbers(regions.upper),
                   .truth = numbers(truth),
                   .groups = groups});
  const Judged judged = predictor_.judge(rows, truth);
  p_values_.insert(p_values_.end(), judged.p_values.begin(), judged.p_values.end());
  if (calibrated_.rows.sides == 1) {
    scores_.insert(scores_.end(), judged.scores.begin(), judged.scores.end());
  }
  for (const bool in :
       within_radii(predictor_, rows, truth, judged.scores, level_, calibrated_.score.paper)) {
    detected_ += in ? 1 : 0;
  }
  return regions;
}

MethodResult MethodStream::finish() const {
  if (!evaluator_) fail("the data has no rows to evaluate");
  MethodResult result;
  result.name = calibrated_.score.name;
  result.evaluation = evaluator_->finish();
  const bool one_radius = calibrated_.calibration.name == "split" && calibrated_.rows.sides == 1;
  if (one_radius) {
    result.radius = calibrated_.radius(level_)[0];
    result.scores = calibrated_.rows.scores;
    result.curve = coverage_curve(calibrated_.rows.scores, scores_, curve_levels());
  } else {
    result.curve = coverage_curve(p_values_, curve_levels());
  }
  result.guaranteed = obeys_law(calibrated_.score);
  if (!result.guaranteed) result.detection = coverage_of(detected_, p_values_.size());
  return result;
}

}  // namespace fcp
