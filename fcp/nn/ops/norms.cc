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
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/normalization.h"
#include "fcp/nn/ops/reduce.h"
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

// More normalisations: GroupNormalization (mean and variance of groups of channels),
// RMSNormalization (no mean: x / √(mean x² + ε) · scale) and LRN (each number divided by a power of
// the squares of its neighbouring channels). Assumes inference. Cost: linear in the input.
// Reference: ONNX operator specification, versions 18, 21 and 23.
// Tested by tests/nn/ops/normalization_test.cc.

namespace {

class GroupNormalization : public NormalizingOp {
 public:
  explicit GroupNormalization(OpArguments& arguments)
      : node_(arguments.node()),
        groups_(arguments.integer("num_groups", 0)),
        epsilon_(read_epsilon(arguments)),
        per_group_(arguments.opset() < 21) {
    arguments.expect_inputs(3, 3);
    if (!per_group_) arguments.ignore("stash_type");  // the precision inside, no less than X's here
    if (groups_ < 1) {
      fail(describe(node_), ": num_groups is ", groups_, ", expected at least 1");
    }
  }

  // X [N, C, …]; scale and bias [C], before operator set 21 [groups].
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 2, 16, node_, "X");
    expect_floating(x, node_, "X");
    const int64_t channels = x.size(1);
    if (channels % groups_ != 0 || x.numel() == 0) {
      fail(describe(node_), ": X has shape ", shape_text(x.sizes()), ", expected channels that ",
           groups_, " groups divide, and some elements");
    }
    Tensors weights;
    const char* names[] = {"scale", "bias"};
    for (size_t i = 0; i < 2; ++i) {
      expect_vector(inputs[i + 1], per_group_ ? groups_ : channels, node_, names[i]);
      const torch::Tensor weight = inputs[i + 1].to(x.scalar_type());
      weights.push_back(per_group_ ? repeat_each(weight, channels / groups_, 0) : weight);
    }
    return {torch::group_norm(x, groups_, weights[0], weights[1], epsilon_)};
  }

  Normalized normalized(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const int64_t times = per_group_ ? x.size(1) / groups_ : 1;
    Normalized result;
    result.groups = groups_;
    result.epsilon = epsilon_;
    result.scale = per_channel(repeat_each(inputs[1], times, 0), x);
    result.bias = per_channel(repeat_each(inputs[2], times, 0), x);
    return result;
  }

 private:
  Node node_;
  int64_t groups_;
  double epsilon_;
  bool per_group_;
};

class RmsNormalization : public NormalizingOp {
 public:
  explicit RmsNormalization(OpArguments& arguments)
      : node_(arguments.node()),
        axis_(arguments.integer("axis", -1)),
        epsilon_(read_epsilon(arguments)) {
    arguments.expect_inputs(2, 2);
    arguments.ignore("stash_type");  // the precision inside, no less than X's here
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_floating(x, node_, "X");
    expect_floating(inputs[1], node_, "scale");
    expect_broadcast(inputs[1], x.sizes(), node_, "scale");
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    std::vector<int64_t> axes;
    for (int64_t i = axis; i < x.dim(); ++i) axes.push_back(i);
    const torch::Tensor square = x.square().mean(axes, /*keepdim=*/true);
    return {x * torch::rsqrt(square + epsilon_) * inputs[1]};
  }

  Normalized normalized(const Tensors& inputs) const override {
    const int64_t rank = inputs[0].dim();
    Normalized result;
    result.axes = rank - normalize_axis(axis_, rank, node_);
    result.epsilon = epsilon_;
    result.centers = false;
    result.scale = inputs[1];
    return result;
  }

 private:
  Node node_;
  int64_t axis_;
  double epsilon_;
};

// x / (bias + α/size · Σ x²)^β, summed over the `size` channels around each.
class LocalResponse : public Op {
 public:
  explicit LocalResponse(OpArguments& arguments)
      : node_(arguments.node()),
        size_(arguments.integer("size", 0)),
        alpha_(arguments.number("alpha", 1e-4f)),
        beta_(arguments.number("beta", 0.75)),
        bias_(arguments.number("bias", 1)) {
    arguments.expect_inputs(1, 1);
    if (size_ < 1) fail(describe(node_), ": size is ", size_, ", expected at least 1");
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 3, 16, node_, "X");
    expect_floating(x, node_, "X");
    const int64_t before = (size_ - 1) / 2, after = size_ - 1 - before;
    const torch::Tensor lines = x.square().reshape({x.size(0), 1, x.size(1), -1});
    const torch::Tensor padded = torch::constant_pad_nd(lines, {0, 0, before, after});
    const torch::Tensor mean = torch::avg_pool2d(padded, {size_, 1}, {1, 1});
    return {x / torch::pow(mean.reshape(x.sizes()) * alpha_ + bias_, beta_)};
  }

 private:
  Node node_;
  int64_t size_;
  double alpha_;
  double beta_;
  double bias_;
};

}  // namespace

OpPointer make_group_normalization(OpArguments& arguments) {
  return std::make_unique<GroupNormalization>(arguments);
}

OpPointer make_rms_normalization(OpArguments& arguments) {
  return std::make_unique<RmsNormalization>(arguments);
}

OpPointer make_lrn(OpArguments& arguments) { return std::make_unique<LocalResponse>(arguments); }

// LpNormalization: each line along an axis divided by its l1 or l2 norm; 0 where that is 0.
// Gradients flow; no bounds.
// Cost: linear. Reference: ONNX operator specification. Tested by tests/parity/op_cases_test.cc.

namespace {

class LpNormalizationOp : public Op {
 public:
  explicit LpNormalizationOp(OpArguments& arguments)
      : node_(arguments.node()),
        axis_(arguments.integer("axis", -1)),
        p_(arguments.integer("p", 2)) {
    arguments.expect_inputs(1, 1);
    if (p_ != 1 && p_ != 2) fail(describe(node_), ": p is ", p_, ", expected 1 or 2");
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_floating(x, node_, "input");
    expect_rank(x, 1, 16, node_, "input");
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    torch::Tensor norm = (p_ == 1 ? x.abs() : x * x).sum(axis, /*keepdim=*/true);
    if (p_ == 2) norm = norm.sqrt();
    return {x / norm.masked_fill(norm == 0, 1)};
  }

 private:
  Node node_;
  int64_t axis_, p_;
};

}  // namespace

OpPointer make_lp_normalization(OpArguments& arguments) {
  return std::make_unique<LpNormalizationOp>(arguments);
}

}  // namespace fcp
