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

// One tensor of slopes, or of places in a fan, [S, N, …] with Adam's state.
struct Choice {
  torch::Tensor value, least, most, mean, square;
};

Choice make_choice(const torch::Tensor& start, const torch::Tensor& least,
                   const torch::Tensor& most, int64_t count) {
  std::vector<int64_t> shape = start.sizes().vec();
  shape.insert(shape.begin(), count);
  const torch::Tensor value = start.expand(shape).clone();
  return {value, least, most, torch::zeros_like(value), torch::zeros_like(value)};
}

// The place of the line that is closest to the curve in the middle of its range.
Choice fan_choice(const Fan& fan, const Range& range, bool below, int64_t count) {
  const torch::Tensor middle = (range.lower + range.upper) / 2;
  const torch::Tensor height = fan.slopes * middle + fan.biases;
  const torch::Tensor line = below ? height.argmax(0) : height.argmin(0);
  const auto last = static_cast<double>(fan.slopes.size(0) - 1);
  const torch::Tensor start = line.to(fan.slopes.scalar_type()) / last;
  return make_choice(start, torch::zeros_like(start), torch::ones_like(start), count);
}

void ascend(Choice& choice, const torch::Tensor& gradient, int step, double rate) {
  if (!gradient.defined()) return;
  const torch::Tensor g = gradient.masked_fill(gradient.isfinite().logical_not(), 0);
  choice.mean = choice.mean * kBeta1 + g * (1 - kBeta1);
  choice.square = choice.square * kBeta2 + g.square() * (1 - kBeta2);
  const torch::Tensor scale = (choice.square / (1 - std::pow(kBeta2, step))).sqrt() + kEpsilon;
  const torch::Tensor move = choice.mean / (1 - std::pow(kBeta1, step)) / scale;
  choice.value =
      torch::minimum(torch::maximum(choice.value + move * rate, choice.least), choice.most);
}

// The choices of all steps for both bounds.
struct Choices {
  std::vector<size_t> steps;
  std::vector<Choice> all;   // those of a step one after the other, for the lower bound first
  std::vector<bool> is_fan;  // by step of `steps`

  bool fans() const { return std::find(is_fan.begin(), is_fan.end(), true) != is_fan.end(); }
};

// Steps after the one that makes the slot do not matter.
Choices make_choices(const LinearHead& linear, int64_t count) {
  Choices choices;
  for (size_t i = 0; i < linear.steps.size(); ++i) {
    const Relaxation& lines = linear.steps[i].lines;
    const bool fan = lines.below.slopes.defined();
    if (!fan && !lines.least_slope.defined()) continue;
    choices.steps.push_back(i);
    choices.is_fan.push_back(fan);
    const int slot = linear.head->network->steps()[i].inputs[0];
    const Range& range = linear.ranges[static_cast<size_t>(slot)];
    for (int side = 0; side < 2; ++side) {
      if (fan) {
        choices.all.push_back(fan_choice(lines.below, range, /*below=*/true, count));
        choices.all.push_back(fan_choice(lines.above, range, /*below=*/false, count));
      } else {
        choices.all.push_back(
            make_choice(lines.lower_slope, lines.least_slope, lines.most_slope, count));
      }
    }
  }
  return choices;
}

// The choices as variables, and where they stand.
FreeSteps free_steps(const LinearHead& linear, const Choices& choices, Tensors& variables) {
  FreeSteps free(linear.steps.size());
  size_t next = 0;
  const auto variable = [&] {
    variables.push_back(choices.all[next++].value.detach().requires_grad_());
    return variables.back();
  };
  for (size_t i = 0; i < choices.steps.size(); ++i) {
    FreeStep& step = free[choices.steps[i]];
    for (FreeLines* lines : {&step.for_lower, &step.for_upper}) {
      lines->below = variable();
      if (choices.is_fan[i]) lines->above = variable();
    }
  }
  return free;
}

Range tighter(const Range& best, const Range& range) {
  if (!best.lower.defined()) return range;
  return {torch::fmax(best.lower, range.lower), torch::fmin(best.upper, range.upper)};
}

}  // namespace

Range bound_numbers_optimized(const LinearHead& linear, int slot, const torch::Tensor& numbers,
                              int iterations, double rate) {
  Choices choices = make_choices(linear, numbers.size(0));
  if (choices.steps.empty()) return bound_numbers(linear, slot, numbers);
  Range best;
  // The first choice of slopes is CROWN's; that of places need not be.
  if (choices.fans()) best = bound_numbers(linear, slot, numbers);
  for (int step = 1; step <= std::max(1, iterations); ++step, rate *= kDecay) {
    const torch::AutoGradMode mode(step < iterations);
    Tensors variables;
    const FreeSteps free = free_steps(linear, choices, variables);
    const Range range = bound_numbers(linear, slot, numbers, free);
    best = tighter(best, {range.lower.detach(), range.upper.detach()});
    const torch::Tensor goal = range.lower.sum() - range.upper.sum();
    if (step >= iterations || !goal.requires_grad()) break;
    const Tensors gradients =
        torch::autograd::grad({goal}, variables, {}, false, false, /*allow_unused=*/true);
    const torch::NoGradGuard no_gradients;
    for (size_t i = 0; i < choices.all.size(); ++i) {
      ascend(choices.all[i], gradients[i], step, rate);
    }
  }
  return best;
}

}  // namespace fcp
