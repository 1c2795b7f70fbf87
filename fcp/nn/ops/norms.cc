// Reductions that bend: ReduceL1 Σ|x|, ReduceL2 √Σx², ReduceSumSquare Σx², ReduceLogSum ln Σx,
// ReduceLogSumExp ln Σ exp x and ReduceProd Πx.
//
// Intervals: all but the product are a rising function of a sum of terms, each of which has its own
// exact range over an interval; so the ends are the function of the sums of the terms' ends.
// Rounding: n + 8 roundoffs of the sum of the terms' magnitudes, before the last function.
// Cost: linear in the input. Reference: ONNX operator specification.
// Tested by tests/parity/op_cases_test.cc and tests/bounds/rules_test.cc.
#include <cmath>
#include <limits>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/reductions.h"
#include "fcp/nn/ops/shared.h"

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
    return known ? BoundRule::kSmooth : BoundRule::kNone;
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

  // At the middle m, x = m + d with |d| ≤ r:
  //   |x| is off its tangent by 0, and by up to 2 min(|l|, u) where l < 0 < u;
  //   Σx² by Σd² ≤ Σr², and √Σx² by no more than Σr² / 2√Σm², the root being concave;
  //   ln Σ exp x by what softmax.cc says; ln Σx by ln(1 + t) − t with |t| ≤ Σr / Σm.
  Remainder remainder(const std::vector<Range>& inputs, const Tensors& middles,
                      double unit) const override {
    Tensors arguments = middles;
    const std::vector<int64_t> axes = axes_.of(arguments);
    const torch::Tensor low = inputs[0].lower.to(torch::kDouble);
    const torch::Tensor high = inputs[0].upper.to(torch::kDouble);
    const torch::Tensor m = middles[0].to(torch::kDouble);
    const torch::Tensor r = torch::maximum(high - m, m - low);
    const Range exact = exact_remainder(low, high, m, r, axes);
    if (unit == 0) return {exact, {}};
    // As many roundings of the sum's magnitude as the sum has terms, through the last function.
    const Range wide = interval(inputs, unit)[0], narrow = interval(inputs, 0)[0];
    const double terms = static_cast<double>(count(low, axes)) + 16;
    const torch::Tensor size = torch::maximum(low.abs(), high.abs());
    const torch::Tensor walked = kind_ == NormKind::kLogSum      ? torch::ones_like(narrow.lower)
                                 : kind_ == NormKind::kSumSquare ? sum(size.square(), axes) * 4
                                                                 : sum(size, axes) * 2;
    return {
        exact,
        torch::maximum(narrow.lower - wide.lower, wide.upper - narrow.upper).to(torch::kDouble) *
                2 +
            walked.to(torch::kDouble) * (terms * unit)};
  }

  double flops(const Tensors& inputs, const Tensors&) const override {
    return 2 * static_cast<double>(inputs[0].numel());
  }

 private:
  Range exact_remainder(const torch::Tensor& low, const torch::Tensor& high, const torch::Tensor& m,
                        const torch::Tensor& r, const std::vector<int64_t>& axes) const {
    const torch::Tensor none = torch::zeros_like(sum(m, axes));
    if (kind_ == NormKind::kL1) {
      return {none, sum(torch::minimum(-low, high).clamp_min(0), axes) * 2};
    }
    if (kind_ == NormKind::kSumSquare) return {none, sum(r.square(), axes)};
    if (kind_ == NormKind::kL2) {
      const torch::Tensor above = sum(r.square(), axes) / (sum(m.square(), axes).sqrt() * 2);
      return {none, above};
    }
    if (kind_ == NormKind::kLogSum) {
      const torch::Tensor t = sum(r, axes) / sum(m, axes);
      const torch::Tensor known = (t >= 0).logical_and(t < 1);
      return {torch::where(known, torch::log1p(-t) + t, torch::full_like(t, NAN)), none};
    }
    const torch::Tensor largest = axes.empty() ? m : m.amax(axes, /*keepdim=*/true);
    const torch::Tensor shares = (m - largest).exp();
    const auto mean = [&](const torch::Tensor& x) {
      return sum(shares * x, axes) / sum(shares, axes);
    };
    const torch::Tensor most = axes.empty() ? r : r.amax(axes, axes_.keep_dimensions());
    return {none, torch::minimum(torch::minimum(mean(torch::expm1(r) - r), most.square() / 2),
                                 most + mean(r))};
  }

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
