#include "fcp/training/ridge.h"

#include <cmath>
#include <limits>
#include <tuple>

#include <torch/types.h>

namespace fcp {
namespace {

constexpr double kFewestPenalty = 1e-4, kMostPenalty = 1e3;  // over the number of rows
constexpr int kPenalties = 14;

torch::Tensor doubles_of(const Array& array) {
  return torch::from_blob(
             const_cast<float*>(array.values.data()),
             {static_cast<int64_t>(array.rows()), static_cast<int64_t>(array.row_size())},
             torch::kFloat)
      .to(torch::kDouble);
}

torch::Tensor with_means(const torch::Tensor& x, const torch::Tensor& mean) {
  return torch::where(x.isnan(), mean.to(torch::kDouble).expand_as(x), x);
}

// z = P (its directions)ᵀ: the columns of P are orthogonal and have the squared lengths `sizes`.
struct Directions {
  torch::Tensor coordinates;  // P [N, R]
  torch::Tensor sizes;        // [R]
};

Directions directions_of(const torch::Tensor& z) {
  const bool wide = z.size(1) > z.size(0);
  const auto [values, vectors] = torch::linalg_eigh(wide ? z.matmul(z.t()) : z.t().matmul(z), "L");
  const torch::Tensor sizes = values.clamp_min(0);
  const torch::Tensor kept = (sizes > 1e-10 * sizes.max().clamp_min(1e-300)).nonzero().flatten();
  const torch::Tensor own = vectors.index_select(1, kept), size = sizes.index_select(0, kept);
  return {wide ? own * size.sqrt() : z.matmul(own), size};
}

}  // namespace

RidgeFit fit_ridge(const Array& x, const Array& y, const torch::Tensor& row_weight) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor raw = doubles_of(x), target = doubles_of(y).flatten();
  const auto rows = static_cast<double>(x.rows());
  const torch::Tensor known = raw.isnan().logical_not().to(torch::kDouble).sum(0).clamp_min(1);
  RidgeFit fit;
  fit.mean = (raw.nan_to_num(0).sum(0) / known).to(torch::kFloat);
  const torch::Tensor whole = with_means(raw, fit.mean);
  const torch::Tensor given =
      row_weight.defined() ? row_weight.to(torch::kDouble).flatten() : torch::ones_like(target);
  const torch::Tensor share = given / given.sum();
  const torch::Tensor mean = share.matmul(whole);
  const torch::Tensor deviation = share.matmul((whole - mean).square()).sqrt();
  // A column that varies by its rounding alone does not vary.
  const torch::Tensor varies = deviation > 1e-6 * mean.abs();
  const torch::Tensor unit = torch::where(varies, 1 / deviation, torch::zeros_like(deviation));
  const torch::Tensor z = (whole - mean) * unit;
  const double centre = share.dot(target).item<double>();
  // A row of weight w counts as one that is √w times as long.
  const torch::Tensor root = (share * rows).sqrt(), long_z = z * root.unsqueeze(1);
  const torch::Tensor centred = (target - centre) * root;
  const Directions found = directions_of(long_z);
  const torch::Tensor products = found.coordinates.t().matmul(centred);
  double least = std::numeric_limits<double>::infinity();
  torch::Tensor best, remaining;  // 1 less the leverage of each row
  for (int i = 0; i < kPenalties; ++i) {
    const double step = static_cast<double>(i) / (kPenalties - 1);
    const double penalty = kFewestPenalty * std::pow(kMostPenalty / kFewestPenalty, step);
    const torch::Tensor shrunk = 1 / (found.sizes + penalty * rows);
    const torch::Tensor answers = found.coordinates.matmul(products * shrunk);
    const torch::Tensor leverage = (found.coordinates.square() * shrunk).sum(1) + share;
    const torch::Tensor left = (1 - leverage).clamp_min(1e-6);
    const double loss = ((centred - answers) / left).square().mean().item<double>();
    if (!(loss < least)) continue;
    least = loss;
    fit.penalty = penalty;
    remaining = left;
    best = products * shrunk / found.sizes;
  }
  if (!best.defined()) {
    best = torch::zeros_like(products);
    remaining = torch::ones_like(target);
  }
  const torch::Tensor standard = long_z.t().matmul(found.coordinates.matmul(best));
  fit.left_out = target - (target - centre - z.matmul(standard)) / remaining;
  fit.weight = standard * unit;
  fit.bias = centre - mean.dot(fit.weight).item<double>();
  return fit;
}

}  // namespace fcp
