#include "fcp/methods/calibrations/density_ratio.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {
namespace {

constexpr double kRidge = 1;
constexpr double kLargestLogRatio = 30;
constexpr int kMostSteps = 50;

torch::Tensor plain_rows(const torch::Tensor& x) {
  return x.to(torch::kCPU, torch::kDouble).flatten(1);
}

// Standardised, with a last column of ones.
torch::Tensor design(const DensityRatio& ratio, const torch::Tensor& x) {
  const torch::Tensor rows = plain_rows(x);
  if (rows.size(1) != ratio.mean.size(0)) {
    fail("the likelihood ratio was fitted on rows of ", ratio.mean.size(0), " numbers; found ",
         rows.size(1));
  }
  // A missing number is read as the mean.
  const torch::Tensor given = (rows - ratio.mean) / ratio.deviation;
  const torch::Tensor scaled = torch::where(given.isnan(), torch::zeros_like(given), given);
  return torch::cat({scaled, torch::ones({rows.size(0), 1}, torch::kDouble)}, 1);
}

}  // namespace

std::vector<double> DensityRatio::weights(const torch::Tensor& x) const {
  const torch::Tensor logarithm = row_product(design(*this, x), slope.unsqueeze(1)).squeeze(1);
  const auto exp = [](const torch::Tensor& t) { return torch::exp(t); };
  const torch::Tensor ratio =
      each_alike(exp, logarithm.clamp(-kLargestLogRatio, kLargestLogRatio)).contiguous();
  return {ratio.data_ptr<double>(), ratio.data_ptr<double>() + ratio.numel()};
}

DensityRatio fit_density_ratio(const torch::Tensor& from, const torch::Tensor& to) {
  if (from.size(0) < 2 || to.size(0) < 2) {
    fail("a likelihood ratio needs at least two rows of each kind; found ", from.size(0), " and ",
         to.size(0));
  }
  const torch::Tensor before = plain_rows(from), after = plain_rows(to);
  if (before.size(1) != after.size(1)) {
    fail("a likelihood ratio compares rows of equal width; found ", before.size(1), " and ",
         after.size(1), " numbers");
  }
  const torch::Tensor rows = torch::cat({before, after});
  DensityRatio ratio;
  const torch::Tensor there = rows.isnan().logical_not();
  const torch::Tensor counts = there.sum(0).clamp_min(1);
  const auto mean_there = [&](const torch::Tensor& values) {
    return torch::where(there, values, torch::zeros_like(values)).sum(0) / counts;
  };
  ratio.mean = mean_there(rows);
  ratio.deviation = mean_there((rows - ratio.mean).square()).sqrt();
  ratio.deviation =
      torch::where(ratio.deviation > 0, ratio.deviation, torch::ones_like(ratio.deviation));
  const torch::Tensor x = design(ratio, rows);
  const torch::Tensor label = torch::cat(
      {torch::zeros({from.size(0)}, torch::kDouble), torch::ones({to.size(0)}, torch::kDouble)});
  torch::Tensor ridge = torch::full({x.size(1)}, kRidge, torch::kDouble);
  ridge[-1] = 1e-9;  // the intercept is free
  ratio.slope = torch::zeros({x.size(1)}, torch::kDouble);
  for (int step = 0; step < kMostSteps; ++step) {
    const torch::Tensor odds = torch::sigmoid(x.matmul(ratio.slope));
    const torch::Tensor gradient = x.t().matmul(odds - label) + ridge * ratio.slope;
    const torch::Tensor curvature =
        x.t().matmul(x * (odds * (1 - odds)).unsqueeze(1)) + torch::diag(ridge);
    const torch::Tensor move = torch::linalg_solve(curvature, gradient.unsqueeze(1)).squeeze(1);
    // Newton's step can overshoot where the odds saturate; a step of bounded length cannot run
    // away.
    const double length = move.abs().max().item<double>();
    ratio.slope = ratio.slope - move * std::min(1.0, 2 / std::max(length, 1e-300));
    if (length < 1e-10) break;
  }
  return ratio;
}

}  // namespace fcp
