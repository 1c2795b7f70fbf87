#include "fcp/pipeline/replay_adapter.h"

#include <limits>

#include "fcp/base/error.h"
#include "fcp/pipeline/region_tensors.h"

namespace fcp {
namespace {

// What is known of row `row` alone.
TestInputs one_row(const TestInputs& rows, int64_t row) {
  const auto at = static_cast<size_t>(row);
  TestInputs one{rows.features.narrow(0, row, 1), {}, {}};
  if (!rows.groups.empty()) one.groups = {rows.groups[at]};
  if (!rows.weights.empty()) one.weights = {rows.weights[at]};
  if (!rows.keys.empty()) one.keys = {rows.keys[at]};
  return one;
}

torch::Tensor lengths_of(const torch::Tensor& lower, const torch::Tensor& upper) {
  return torch::where(lower < upper, upper - lower, torch::zeros_like(upper));
}

}  // namespace

std::vector<double> region_sizes(const Regions& regions) {
  torch::Tensor sizes;
  if (regions.members.defined()) {
    sizes = regions.members.to(torch::kDouble).flatten(1).sum(1);
  } else if (regions.parts.defined()) {
    sizes = lengths_of(regions.parts.select(3, 0), regions.parts.select(3, 1)).sum(2).mean(1);
  } else {
    sizes = lengths_of(regions.lower, regions.upper).mean(1);
  }
  const torch::Tensor plain = host_doubles(sizes);
  const std::span<const double> found = numbers(plain);
  return {found.begin(), found.end()};
}

ReplayAdapter::ReplayAdapter(const CalibrationArtifact& artifact, const TensorPredictor& predictor,
                             const Level& level, const AdaptOptions& options, size_t window,
                             uint64_t seed)
    : artifact_(&artifact), predictor_(&predictor), level_(level, options) {
  if (window == 0) return;
  if (artifact.calibration.name != "split" || artifact.rows.sides != 1) {
    fail_option("window", "applies only to split calibration of a score with one side, found ",
                artifact.calibration.name, " of ", artifact.rows.sides);
  }
  window_.emplace(artifact.rows.scores, window, seed);
}

torch::Tensor ReplayAdapter::radii_at(const TestInputs& rows, int64_t row, double level) const {
  constexpr double kEverything = std::numeric_limits<double>::infinity();
  if (window_) return torch::full({1, 1}, window_->radius(level), torch::kDouble);
  const TestInputs one = one_row(rows, row);
  const bool inside = level > 0 && level < 1;
  const torch::Tensor radii =
      host_doubles(predictor_->calibration().radii(one, Level(inside ? level : 0.5)));
  return inside ? radii : torch::full_like(radii, level <= 0 ? kEverything : -kEverything);
}

std::vector<AdaptedRow> ReplayAdapter::take(const TestInputs& rows, const Conformity& judged) {
  std::vector<AdaptedRow> adapted(judged.p_values.size());
  std::vector<torch::Tensor> radii;
  for (size_t i = 0; i < adapted.size(); ++i) {
    const double level = level_.level();
    const double p = window_ ? window_->p_value(judged.scores[i]) : judged.p_values[i];
    radii.push_back(radii_at(rows, static_cast<int64_t>(i), level));
    adapted[i].level = level;
    adapted[i].covered = p > level;
    level_.see(p);
    if (window_) window_->add(judged.scores[i]);
  }
  const std::vector<double> sizes =
      region_sizes(predictor_->score().region(rows.features, torch::cat(radii)));
  for (size_t i = 0; i < adapted.size(); ++i) adapted[i].size = sizes[i];
  return adapted;
}

}  // namespace fcp
