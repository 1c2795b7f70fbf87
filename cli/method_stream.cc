#include "cli/method_stream.h"

#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

torch::Tensor to_host(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kDouble).contiguous();
}

// Levels of the coverage curve: 0.02, 0.04, … 0.5, as exact fractions.
std::vector<Level> curve_levels() {
  std::vector<Level> levels;
  for (uint64_t percent = 2; percent <= 50; percent += 2) {
    levels.push_back(Level::fraction(percent, 100));
  }
  return levels;
}

}  // namespace

std::span<const double> numbers(const torch::Tensor& tensor) {
  return {tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel())};
}

MethodStream::MethodStream(const Score& score, double radius, const Level& level,
                           std::vector<std::string> group_names)
    : score_(score), radius_(radius), level_(level), group_names_(std::move(group_names)) {}

Regions MethodStream::add(const torch::Tensor& features, const torch::Tensor& truth,
                          std::span<const int64_t> groups) {
  Regions regions = score_.region(features, radius_);
  regions = {to_host(regions.prediction), to_host(regions.lower), to_host(regions.upper), {}};
  if (!evaluator_) {
    evaluator_.emplace(static_cast<size_t>(regions.prediction.size(1)),
                       IntervalEvaluationOptions{.level = level_, .group_names = group_names_});
  }
  evaluator_->add({.lower = numbers(regions.lower),
                   .upper = numbers(regions.upper),
                   .truth = numbers(truth),
                   .groups = groups});
  const std::vector<double> more = score_.score(features, truth);
  scores_.insert(scores_.end(), more.begin(), more.end());
  return regions;
}

MethodResult MethodStream::finish(const std::string& name,
                                  const std::vector<double>& calibration) const {
  if (!evaluator_) fail("the data has no rows to evaluate");
  MethodResult result;
  result.name = name;
  result.evaluation = evaluator_->finish();
  result.radius = radius_;
  result.curve = coverage_curve(calibration, scores_, curve_levels());
  return result;
}

}  // namespace fcp
