#include "fcp/bounds/cost.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr double kWalkShare = 0.75;  // of the memory

double count(const torch::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.numel()) : 0;
}

// Numbers that one step reads, makes and needs on the way, of all rows together.
struct StepSize {
  double in = 0, out = 0, workspace = 0, candidates = 0;
  bool fans = false;  // of lines below and above a curve
};

// Tensors of the size of the step's inputs and outputs that are there beside the ranges. Curves
// are evaluated in double precision.
double forward_temporaries(const StepSize& size, BoundRule rule, bool outward, double wide) {
  if (rule == BoundRule::kCurve) return 6 * wide * size.in;
  const double each = 2 * size.in + 4 * size.out + size.workspace + 2 * size.candidates;
  return outward ? 2 * each : each;
}

double kept_numbers(const StepSize& size, BoundRule rule, bool outward) {
  if (rule == BoundRule::kCurve) return 2 * size.out + (size.fans ? 42 : 6) * size.in;
  if (rule == BoundRule::kSmooth) return 7 * size.out + size.in;
  return (outward ? 4 : 3) * size.out + 3 * size.candidates;
}

// Of two sets of coefficients, and their parts above and below 0 at a curve.
double backward_numbers(const StepSize& size, BoundRule rule) {
  if (rule == BoundRule::kCurve) return 10 * size.in;
  if (rule == BoundRule::kSmooth) return 6 * size.in + 16 * size.out;
  return 3 * size.in + 4 * size.out + 6 * size.candidates;
}

class CostCounter {
 public:
  CostCounter(const PreparedHead& head, BoundMethod method)
      : head_(head), optimizes_(method == BoundMethod::kAlphaCrown) {}

  void begin(const torch::Tensor& feature) {
    live_ = kept_ = 2 * count(feature);
    number_ = 6 * count(feature);  // A·v, ‖A‖* and what they need, at the end of a walk
    forward_ = 3 * live_;
  }

  void add(size_t index, const Tensors& inputs, const Tensors& outputs) {
    const Step& step = head_.network->steps()[index];
    const BoundPlan& plan = head_.plans[index];
    if (plan.runs) return;
    const StepSize size = size_of(step, plan.rule, inputs, outputs);
    const bool outward = head_.unit > 0;
    const double wide = 8.0 / static_cast<double>(torch::elementSize(head_.type));
    live_ += 2 * size.out;
    forward_ = std::max(forward_, live_ + forward_temporaries(size, plan.rule, outward, wide));
    kept_ += kept_numbers(size, plan.rule, outward);
    workspace_ = std::max(workspace_, size.workspace);
    const double back = backward_numbers(size, plan.rule);
    number_ = std::max(number_, back);
    all_numbers_ += 2 * back;  // autograd keeps them, and slopes with Adam's state
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int slot = step.inputs[i];
      const bool last =
          std::find(step.last_read.begin(), step.last_read.end(), slot) != step.last_read.end();
      if (last && varies(step, i)) live_ -= 2 * count(inputs[i]);
    }
  }

  WalkCost finish(int64_t rows) const {
    const double bytes =
        static_cast<double>(torch::elementSize(head_.type)) / static_cast<double>(rows);
    const double number = optimizes_ ? number_ + all_numbers_ : number_;
    return {forward_ * bytes, (kept_ + workspace_) * bytes, number * bytes};
  }

 private:
  bool varies(const Step& step, size_t input) const {
    const int slot = step.inputs[input];
    return slot >= 0 && !head_.constants[static_cast<size_t>(slot)].defined();
  }

  StepSize size_of(const Step& step, BoundRule rule, const Tensors& inputs,
                   const Tensors& outputs) const {
    StepSize size;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (varies(step, i)) size.in += count(inputs[i]);
    }
    for (const torch::Tensor& output : outputs) size.out += count(output);
    size.workspace = step.op->workspace(inputs, outputs);
    size.fans = optimizes_ && rule == BoundRule::kCurve && !step.op->curve(inputs).hinge;
    if (rule == BoundRule::kLargest || rule == BoundRule::kSmallest) {
      size.candidates = count(step.op->candidates(inputs));
    }
    return size;
  }

  const PreparedHead& head_;
  bool optimizes_;
  double live_ = 0, forward_ = 0, kept_ = 0, number_ = 0, all_numbers_ = 0, workspace_ = 0;
};

}  // namespace

WalkCost walk_cost(const PreparedHead& head, BoundMethod method, const torch::Tensor& rows) {
  CostCounter counter(head, method);
  counter.begin(rows);
  size_t index = 0;
  head.network->run({rows.to(head.output_type)},
                    [&](const Step&, const Tensors& inputs, const Tensors& outputs) {
                      counter.add(index++, inputs, outputs);
                    });
  return counter.finish(rows.size(0));
}

int64_t affordable_rows(const WalkCost& cost, bool linear, size_t memory) {
  const auto budget = static_cast<double>(memory);
  if (cost.least(linear) > budget) {
    const auto megabytes = [](double bytes) { return std::ceil(bytes / 1e5) / 10; };
    fail("bounds of one row", linear ? " and output" : "", " take about ",
         megabytes(cost.least(linear)), " MB of memory, found ", megabytes(budget),
         " MB allowed; allow more memory, ", linear ? "use the bound ibp, " : "",
         "or cut later, where the feature is smaller");
  }
  // Of linear bounds, what is kept for the rows may take half.
  const double each = linear ? std::max(2 * cost.kept, cost.least(linear)) : cost.forward;
  return std::max<int64_t>(1, static_cast<int64_t>(kWalkShare * budget / each));
}

int64_t cached_numbers(const WalkCost& cost, int64_t rows) {
  constexpr double kCache = 8 << 20;  // of the estimate, which is above what loops touch
  const double each = cost.number * static_cast<double>(rows);
  return std::max<int64_t>(1, static_cast<int64_t>(kCache / each));
}

int64_t affordable_numbers(const WalkCost& cost, int64_t rows, size_t memory) {
  const auto count = static_cast<double>(rows);
  const double left = kWalkShare * static_cast<double>(memory) - count * cost.kept;
  return std::max<int64_t>(1, static_cast<int64_t>(left / (count * cost.number)));
}

}  // namespace fcp
