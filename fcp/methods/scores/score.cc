#include "fcp/methods/scores/score.h"

#include <algorithm>
#include <limits>

#include "fcp/base/infinity.h"
#include "fcp/methods/scores/ellipsoid.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {

std::vector<Regions> Score::regions(const torch::Tensor& features,
                                    std::span<const torch::Tensor> radii) const {
  const RunOnce once;
  std::vector<Regions> found;
  for (const torch::Tensor& radius : radii) found.push_back(region(features, radius));
  return found;
}

namespace {

// How far the bound lies beyond a number.
torch::Tensor beyond(const Regions& regions, const torch::Tensor& number) {
  return regions.side == BoundSide::kUpper ? regions.upper - number : number - regions.lower;
}

}  // namespace

torch::Tensor region_lengths(const Regions& regions) {
  if (regions.side != BoundSide::kBoth) return beyond(regions, regions.prediction);
  if (!regions.parts.defined()) return (regions.upper - regions.lower).clamp_min(0);
  return (regions.parts.select(3, 1) - regions.parts.select(3, 0)).clamp_min(0).sum(2);
}

torch::Tensor region_volumes(const Regions& regions) {
  if (regions.factor.defined()) return ellipsoid_volumes(regions);
  return region_lengths(regions).log().mean(1).exp();
}

torch::Tensor region_costs(const Regions& regions, const torch::Tensor& truth) {
  if (regions.side == BoundSide::kBoth) return region_lengths(regions);
  return beyond(regions, truth.to(regions.lower.device(), torch::kDouble));
}

double miss_penalty(const Level& level, BoundSide side) {
  return (side == BoundSide::kBoth ? 2 : 1) / level.value();
}

torch::Tensor region_distances(const Regions& regions, const torch::Tensor& truth) {
  const torch::Tensor y = truth.to(regions.lower.device(), torch::kDouble);
  if (!regions.parts.defined()) {
    return torch::maximum(regions.lower - y, y - regions.upper).clamp_min(0);
  }
  const torch::Tensor one = y.unsqueeze(2);  // [N, K, 1]
  return torch::maximum(regions.parts.select(3, 0) - one, one - regions.parts.select(3, 1))
      .clamp_min(0)
      .amin(2);
}

torch::Tensor in_regions(const Regions& regions, const torch::Tensor& truth) {
  const torch::Tensor y = truth.to(regions.lower.device(), torch::kDouble);
  if (!regions.parts.defined()) {
    const torch::Tensor in_box = (regions.lower <= y).logical_and(y <= regions.upper).all(1);
    return regions.factor.defined() ? in_box.logical_and(in_ellipsoids(regions, y)) : in_box;
  }
  const torch::Tensor one = y.unsqueeze(2);  // [N, K, 1]
  return (regions.parts.select(3, 0) <= one)
      .logical_and(one <= regions.parts.select(3, 1))
      .any(2)
      .all(1);
}

Regions regions_of_unions(const torch::Tensor& prediction,
                          const std::vector<std::vector<Interval>>& unions) {
  size_t most = 1;
  for (const std::vector<Interval>& parts : unions) most = std::max(most, parts.size());
  Regions regions{prediction,
                  torch::full_like(prediction, kInfinity),
                  torch::full_like(prediction, -kInfinity),
                  {},
                  {}};
  regions.parts = torch::empty(
      {prediction.size(0), prediction.size(1), static_cast<int64_t>(most), 2}, torch::kDouble);
  double* part = regions.parts.data_ptr<double>();
  for (size_t i = 0; i < unions.size(); ++i) {
    for (size_t j = 0; j < most; ++j) {
      const bool there = j < unions[i].size();
      *part++ = there ? unions[i][j].lower : kInfinity;
      *part++ = there ? unions[i][j].upper : -kInfinity;
    }
    if (unions[i].empty()) continue;
    regions.lower.data_ptr<double>()[i] = unions[i].front().lower;
    regions.upper.data_ptr<double>()[i] = unions[i].back().upper;
  }
  return regions;
}

}  // namespace fcp
