#include "fcp/bounds/alpha_crown.h"

#include <algorithm>
#include <cmath>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace fcp {
namespace {

constexpr double kDecay = 0.98;  // of the rate, per iteration
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

// One tensor of slopes [S, N, …] with Adam's state.
struct Slopes {
  torch::Tensor value, least, most, mean, square;
};

Slopes make_slopes(const Relaxation& lines, int64_t count) {
  std::vector<int64_t> shape = lines.lower_slope.sizes().vec();
  shape.insert(shape.begin(), count);
  Slopes slopes;
  slopes.value = lines.lower_slope.expand(shape).clone();
  slopes.least = lines.least_slope;
  slopes.most = lines.most_slope;
  slopes.mean = torch::zeros_like(slopes.value);
  slopes.square = torch::zeros_like(slopes.value);
  return slopes;
}

void ascend(Slopes& slopes, const torch::Tensor& gradient, int step, double rate) {
  if (!gradient.defined()) return;
  const torch::Tensor g = gradient.masked_fill(gradient.isfinite().logical_not(), 0);
  slopes.mean = slopes.mean * kBeta1 + g * (1 - kBeta1);
  slopes.square = slopes.square * kBeta2 + g.square() * (1 - kBeta2);
  const torch::Tensor scale = (slopes.square / (1 - std::pow(kBeta2, step))).sqrt() + kEpsilon;
  const torch::Tensor move = slopes.mean / (1 - std::pow(kBeta1, step)) / scale;
  slopes.value =
      torch::minimum(torch::maximum(slopes.value + move * rate, slopes.least), slopes.most);
}

// Numbers [first, first + count) of the slot, [N, count].
Range optimize(const LinearHead& linear, int slot, int64_t first, int64_t count, int iterations,
               double rate) {
  std::vector<size_t> hinges;
  std::vector<Slopes> slopes;  // for the lower bound, then for the upper, of each hinge
  for (size_t i = 0; i < linear.steps.size(); ++i) {
    const Relaxation& lines = linear.steps[i].lines;
    if (!lines.least_slope.defined()) continue;
    hinges.push_back(i);
    for (int side = 0; side < 2; ++side) slopes.push_back(make_slopes(lines, count));
  }
  if (hinges.empty()) return bound_numbers(linear, slot, first, count);
  Range best;
  for (int step = 1; step <= std::max(1, iterations); ++step, rate *= kDecay) {
    const torch::AutoGradMode mode(true);
    SlopesByStep by_step(linear.steps.size());
    Tensors variables;
    for (size_t h = 0; h < hinges.size(); ++h) {
      for (size_t side = 0; side < 2; ++side) {
        variables.push_back(slopes[2 * h + side].value.detach().requires_grad_());
      }
      by_step[hinges[h]] = {variables[2 * h], variables[2 * h + 1]};
    }
    const Range range = bound_numbers(linear, slot, first, count, by_step);
    const torch::Tensor lower = range.lower.detach(), upper = range.upper.detach();
    best = step == 1 ? Range{lower, upper}
                     : Range{torch::fmax(best.lower, lower), torch::fmin(best.upper, upper)};
    const torch::Tensor goal = range.lower.sum() - range.upper.sum();
    if (step >= iterations || !goal.requires_grad()) break;
    const Tensors gradients =
        torch::autograd::grad({goal}, variables, {}, false, false, /*allow_unused=*/true);
    const torch::NoGradGuard no_gradients;
    for (size_t i = 0; i < slopes.size(); ++i) ascend(slopes[i], gradients[i], step, rate);
  }
  return best;
}

}  // namespace

Range bound_slot_optimized(const LinearHead& linear, int slot, int iterations, double rate) {
  const torch::Tensor& like = linear.ranges[static_cast<size_t>(slot)].lower;
  const int64_t numbers = like.numel() / like.size(0);
  const int64_t chunk = linear.numbers_at_once;
  Tensors lower, upper;
  for (int64_t first = 0; first < numbers; first += chunk) {
    const Range part =
        optimize(linear, slot, first, std::min(chunk, numbers - first), iterations, rate);
    lower.push_back(part.lower);
    upper.push_back(part.upper);
  }
  return {torch::cat(lower, 1).view(like.sizes()), torch::cat(upper, 1).view(like.sizes())};
}

}  // namespace fcp
