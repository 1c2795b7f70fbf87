// Reductions that bend: ReduceL1 Σ|x|, ReduceL2 √Σx², ReduceSumSquare Σx², ReduceLogSum ln Σx,
// ReduceLogSumExp ln Σ exp x and ReduceProd Πx.
//
// Intervals: all but the product are a rising function of a sum of terms, each of which has its own
// exact range over an interval; so the ends are the function of the sums of the terms' ends.
// Rounding: n + 8 roundoffs of the sum of the terms' magnitudes, before the last function.
// Cost: linear in the input. Reference: ONNX operator specification.
// Tested by tests/parity/op_cases_test.cc and tests/bounds/rules_test.cc.
#include <limits>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/network/ops/checks.h"
#include "fcp/network/ops/factories.h"
#include "fcp/network/ops/reductions.h"
#include "fcp/network/ops/shared.h"

namespace fcp {
namespace {

enum class NormKind { kL1, kL2, kSumSquare, kLogSum, kLogSumExp, kProduct };

class NormOp : public Op {
 public:
  NormOp(OpArguments& arguments, NormKind kind)
      : node_(arguments.node()), kind_(kind), axes_(arguments, 18) {}

  Tensors forward(const Tensors& inputs) const override {
    const std::vector<int64_t> axes = axes_.of(inputs);
    const torch::Tensor& x = inputs[0];
    if (x.scalar_type() == torch::kBool) fail(describe(node_), ": data is Bool, expected numbers");
    if (kind_ == NormKind::kProduct) return {product(x, axes)};
    const torch::ScalarType type = x.scalar_type();
    const torch::Tensor wide = x.is_floating_point() ? x : x.to(torch::kDouble);
    if (kind_ == NormKind::kLogSumExp && !axes.empty() && count(x, axes) > 0) {
      return {torch::logsumexp(wide, axes, axes_.keep_dimensions()).to(type)};
    }
    return {last(sum(term(wide), axes)).to(type)};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    const bool known = kind_ != NormKind::kProduct && affine_in_first(constant) != BoundRule::kNone;
    return known ? BoundRule::kInterval : BoundRule::kNone;
  }

  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    Tensors arguments;
    for (const Range& input : inputs) arguments.push_back(input.lower);
    const std::vector<int64_t> axes = axes_.of(arguments);
    const torch::ScalarType type = inputs[0].lower.scalar_type();
    const torch::Tensor low = inputs[0].lower.to(torch::kDouble);
    const torch::Tensor high = inputs[0].upper.to(torch::kDouble);
    torch::Tensor least = term(low), most = term(high);
    if (kind_ != NormKind::kLogSum && kind_ != NormKind::kLogSumExp) {
      const torch::Tensor larger = torch::maximum(least, most);
      const torch::Tensor across = (low < 0).logical_and(high > 0);
      least = torch::minimum(least, most).masked_fill(across, 0);
      most = larger;
    }
    const double terms = static_cast<double>(count(low, axes)) + 8;
    const double slack = terms * unit / (1 - terms * unit);
    const torch::Tensor size = sum(torch::maximum(least.abs(), most.abs()), axes) * slack;
    Range range = {last(sum(least, axes) - size), last(sum(most, axes) + size)};
    if (unit > 0) {
      // The last function's own rounding; LogSumExp also rounds the largest x it takes out.
      const torch::Tensor largest =
          kind_ == NormKind::kLogSumExp ? extreme(low, high, axes) : torch::zeros_like(range.lower);
      const double tiny = std::numeric_limits<float>::min();
      const auto own = [&](const torch::Tensor& end) {
        return (end.abs() + largest + 1e-3) * (16 * unit) + tiny;
      };
      range = {range.lower - own(range.lower), range.upper + own(range.upper)};
    }
    return {{range.lower.to(type), range.upper.to(type)}};
  }

  double flops(const Tensors& inputs, const Tensors&) const override {
    return 2 * static_cast<double>(inputs[0].numel());
  }

 private:
  static int64_t count(const torch::Tensor& x, const std::vector<int64_t>& axes) {
    int64_t elements = 1;
    for (const int64_t axis : axes) elements *= x.size(axis);
    return elements;
  }

  torch::Tensor sum(const torch::Tensor& x, const std::vector<int64_t>& axes) const {
    return axes.empty() ? x : x.sum(axes, axes_.keep_dimensions());
  }

  torch::Tensor extreme(const torch::Tensor& low, const torch::Tensor& high,
                        const std::vector<int64_t>& axes) const {
    const torch::Tensor size = torch::maximum(low.abs(), high.abs());
    return axes.empty() ? size : size.amax(axes, axes_.keep_dimensions());
  }

  torch::Tensor term(const torch::Tensor& x) const {
    switch (kind_) {
      case NormKind::kL1:
        return x.abs();
      case NormKind::kL2:
      case NormKind::kSumSquare:
        return x.square();
      case NormKind::kLogSumExp:
        return x.exp();
      default:
        return x;
    }
  }

  torch::Tensor last(const torch::Tensor& sum) const {
    if (kind_ == NormKind::kL2) return sum.clamp_min(0).sqrt();
    const bool logarithm = kind_ == NormKind::kLogSum || kind_ == NormKind::kLogSumExp;
    return logarithm ? sum.log() : sum;
  }

  // libtorch multiplies along one axis at a time.
  torch::Tensor product(torch::Tensor x, const std::vector<int64_t>& axes) const {
    const torch::ScalarType type = x.scalar_type();
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      x = x.prod(*axis, axes_.keep_dimensions(), type);
    }
    return x;
  }

  Node node_;
  NormKind kind_;
  ReducedAxes axes_;
};

}  // namespace

OpPointer make_reduce_l1(OpArguments& arguments) {
  return std::make_unique<NormOp>(arguments, NormKind::kL1);
}

OpPointer make_reduce_l2(OpArguments& arguments) {
  return std::make_unique<NormOp>(arguments, NormKind::kL2);
}

OpPointer make_reduce_sum_square(OpArguments& arguments) {
  return std::make_unique<NormOp>(arguments, NormKind::kSumSquare);
}

OpPointer make_reduce_log_sum(OpArguments& arguments) {
  return std::make_unique<NormOp>(arguments, NormKind::kLogSum);
}

OpPointer make_reduce_log_sum_exp(OpArguments& arguments) {
  return std::make_unique<NormOp>(arguments, NormKind::kLogSumExp);
}

OpPointer make_reduce_prod(OpArguments& arguments) {
  return std::make_unique<NormOp>(arguments, NormKind::kProduct);
}

}  // namespace fcp
