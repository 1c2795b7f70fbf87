// Arithmetic on tensors that broadcast against each other by numpy's rule.
// Tested by tests/nn/ops/arithmetic_test.cc.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

// An operator that combines its inputs from the left, two at a time.
class FoldOp : public Op {
 public:
  explicit FoldOp(OpArguments& arguments) : node_(arguments.node()) {}

  Tensors forward(const Tensors& inputs) const override {
    for (const torch::Tensor& input : inputs) {
      if (input.scalar_type() == torch::kBool) {
        fail(describe(node_), ": an input is Bool, expected numbers");
      }
    }
    const Tensors terms = broadcast_inputs(inputs, node_);
    torch::Tensor result = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) result = combine(result, terms[i]);
    return {result};
  }

 protected:
  virtual torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const = 0;

  Node node_;
};

class AddOp : public FoldOp {
 public:
  using FoldOp::FoldOp;

 protected:
  torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const override {
    return a + b;
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kAffine; }
  double roundings(const Tensors& inputs) const override {
    return static_cast<double>(inputs.size());
  }
};

class SubOp : public FoldOp {
 public:
  using FoldOp::FoldOp;

 protected:
  torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const override {
    return a - b;
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kAffine; }
  double roundings(const Tensors&) const override { return 1; }
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    return {{forward({inputs[0].lower, inputs[1].upper})[0],
             forward({inputs[0].upper, inputs[1].lower})[0]}};
  }
};

// The least and the largest of what the four pairs of ends give, with 0·∞ = 0; rounding is
// monotone, so they are the ends of the result rounded to nearest, and one unit holds the error.
Range corners(const std::array<torch::Tensor, 4>& values, double unit) {
  Range range = {values[0], values[0]};
  for (const torch::Tensor& value : values) {
    range.lower = torch::minimum(range.lower, value);
    range.upper = torch::maximum(range.upper, value);
  }
  if (unit == 0) return range;
  const double slack = 2 * unit;
  const double tiny = std::numeric_limits<float>::min();
  return {range.lower - range.lower.abs() * slack - tiny,
          range.upper + range.upper.abs() * slack + tiny};
}

class MulOp : public FoldOp {
 public:
  using FoldOp::FoldOp;

 protected:
  torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const override {
    return a * b;
  }
  // One factor constant: affine; else the ends of the product.
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant[0] || constant[1] ? BoundRule::kAffine : BoundRule::kBilinear;
  }
  double roundings(const Tensors&) const override { return 1; }
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    const Range a = open_ends(inputs[0]), b = open_ends(inputs[1]);
    const bool affine = a.lower.is_same(a.upper) || b.lower.is_same(b.upper);
    const auto product = [&](const torch::Tensor& x, const torch::Tensor& y) {
      const torch::Tensor value = forward({x, y})[0];
      return value.masked_fill(value.isnan(), 0);  // 0 · ∞
    };
    return {corners({product(a.lower, b.lower), product(a.lower, b.upper),
                     product(a.upper, b.lower), product(a.upper, b.upper)},
                    affine ? 0 : unit)};
  }
};

// Integers divide toward zero. Dividing the least integer by −1 traps on common processors, so −1
// is taken out of the divisor and negates the quotient instead.
class DivOp : public FoldOp {
 public:
  using FoldOp::FoldOp;

  // A constant divisor: affine; else the ends of the quotient, or nothing where it may divide by 0.
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant[1] ? BoundRule::kAffine : BoundRule::kSmooth;
  }
  double roundings(const Tensors&) const override { return 1; }
  // At the middles a₀ and b₀, a = a₀ + α and b = b₀ + β:
  //   a/b − tangent = a₀β² / (b₀²b) − αβ / (b₀b)
  Remainder remainder(const std::vector<Range>& inputs, const Tensors& middles,
                      double unit) const override {
    const Tensors pair = broadcast_inputs(middles, node_);
    const auto wide = [](const torch::Tensor& x) { return x.to(torch::kDouble); };
    const torch::Tensor a = wide(pair[0]), b = wide(pair[1]);
    const auto reach = [&](const Range& range, const torch::Tensor& m) {
      return torch::maximum(wide(range.upper) - m, m - wide(range.lower));
    };
    const torch::Tensor moved = reach(inputs[0], a), turned = reach(inputs[1], b);
    const torch::Tensor least = b.abs() - turned;  // |b| at least
    const torch::Tensor mixed = moved * turned / (b.abs() * least);
    const torch::Tensor bent = a / b * turned.square() / (b.abs() * least);
    const torch::Tensor unknown = (least <= 0).logical_or(mixed.isnan());
    const torch::Tensor lower = (bent.clamp_max(0) - mixed).masked_fill(unknown, NAN);
    const torch::Tensor upper = (bent.clamp_min(0) + mixed).masked_fill(unknown, NAN);
    const torch::Tensor size = ((a.abs() + moved) / least.clamp_min(0)).nan_to_num(0, 0, 0);
    const torch::Tensor rounding =
        size * (b.abs() / least + 1) * (16 * unit) + std::numeric_limits<float>::min();
    return {{lower, upper}, rounding.masked_fill(unknown, 0)};
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    const auto& [a, b] = std::pair(inputs[0], inputs[1]);
    const auto quotient = [&](const torch::Tensor& x, const torch::Tensor& y) {
      return forward({x, y})[0];
    };
    const bool affine = b.lower.is_same(b.upper);
    Range range = corners({quotient(a.lower, b.lower), quotient(a.lower, b.upper),
                           quotient(a.upper, b.lower), quotient(a.upper, b.upper)},
                          affine ? 0 : unit);
    if (affine) return {range};
    const torch::Tensor zero = (b.lower <= 0).logical_and(b.upper >= 0);
    return {{torch::where(zero, torch::full_like(range.lower, -kInfinity), range.lower),
             torch::where(zero, torch::full_like(range.upper, kInfinity), range.upper)}};
  }

 protected:
  torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const override {
    if (torch::isFloatingType(a.scalar_type())) return a / b;
    if ((b == 0).any().item<bool>()) fail(describe(node_), ": divides integers by 0");
    if (b.scalar_type() == torch::kByte) return torch::div(a, b, "trunc");
    const torch::Tensor minus = b == -1;
    const torch::Tensor quotient = torch::div(a, b.masked_fill(minus, 1), "trunc");
    return torch::where(minus, -quotient, quotient);
  }
};

// The remainder: of the sign of the divisor, or with fmod = 1 of the dividend. Floating-point
// numbers need fmod = 1.
class ModOp : public FoldOp {
 public:
  explicit ModOp(OpArguments& arguments)
      : FoldOp(arguments), dividend_(arguments.integer("fmod", 0) != 0) {}

 protected:
  torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const override {
    if (!a.is_floating_point() && (b == 0).any().item<bool>()) {
      fail(describe(node_), ": divides integers by 0");
    }
    return dividend_ ? torch::fmod(a, b) : torch::remainder(a, b);
  }

 private:
  bool dividend_;
};

// Min and Max: all inputs at each place.
class ExtremeOp : public FoldOp {
 public:
  using FoldOp::FoldOp;
  torch::Tensor candidates(const Tensors& inputs) const override {
    return torch::stack(torch::broadcast_tensors(broadcast_inputs(inputs, node_)), -1);
  }
};

class MinOp : public ExtremeOp {
 public:
  using ExtremeOp::ExtremeOp;
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kSmallest; }

 protected:
  torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const override {
    return torch::minimum(a, b);
  }
};

class MaxOp : public ExtremeOp {
 public:
  using ExtremeOp::ExtremeOp;
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kLargest; }

 protected:
  torch::Tensor combine(const torch::Tensor& a, const torch::Tensor& b) const override {
    return torch::maximum(a, b);
  }
};

class MeanOp : public AddOp {
 public:
  using AddOp::AddOp;
  Tensors forward(const Tensors& inputs) const override {
    if (!inputs[0].is_floating_point()) {
      fail(describe(node_), ": input is ", inputs[0].scalar_type(),
           ", expected floating-point numbers");
    }
    return {AddOp::forward(inputs)[0] / static_cast<double>(inputs.size())};
  }
  double roundings(const Tensors& inputs) const override { return AddOp::roundings(inputs) + 1; }
};

// The result has the base's type, whatever the exponent's.
class PowOp : public Op {
 public:
  explicit PowOp(OpArguments& arguments) : node_(arguments.node()) {}

  Tensors forward(const Tensors& inputs) const override {
    const torch::ScalarType type = inputs[0].scalar_type();
    if (type == torch::kBool || inputs[1].scalar_type() == torch::kBool) {
      fail(describe(node_), ": an input is Bool, expected numbers");
    }
    // Integers to a fractional power go through double, which holds them exactly up to 2^53.
    const torch::ScalarType work = torch::isFloatingType(type)                      ? type
                                   : torch::isFloatingType(inputs[1].scalar_type()) ? torch::kDouble
                                                                                    : type;
    const Tensors pair = broadcast_inputs({inputs[0].to(work), inputs[1].to(work)}, node_);
    const torch::Tensor& base = pair[0];
    const torch::Tensor& exponent = pair[1];
    // One exponent for all lets libtorch square or take roots instead of calling pow.
    const bool single = exponent.is_cpu() && exponent.numel() == 1 && !exponent.requires_grad() &&
                        exponent.dim() <= base.dim() && torch::isFloatingType(work);
    return {(single ? torch::pow(base, exponent.item()) : torch::pow(base, exponent)).to(type)};
  }

  // One constant exponent for all.
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant[1] ? BoundRule::kCurve : BoundRule::kNone;
  }

  Curve curve(const Tensors& inputs) const override {
    if (inputs[1].numel() != 1) {
      fail(describe(node_), ": bounds need one exponent for all, found ", inputs[1].numel());
    }
    const double p = host_exponent_.single(inputs[1]);
    const bool whole = p == std::floor(p), even = std::fmod(p, 2) == 0;
    Curve curve;
    curve.value = [p](const torch::Tensor& x) { return torch::pow(x, p); };
    curve.slope = [p](const torch::Tensor& x) {
      return p == 0 ? torch::zeros_like(x) : torch::pow(x, p - 1) * p;
    };
    const int right = p == 0 || p == 1 ? 0 : p > 0 && p < 1 ? -1 : 1;
    curve.knots = {0};
    curve.curvature = {whole && !even ? -right : right, right};
    if (p < 0) curve.pole = 0;
    return curve;
  }

 private:
  Node node_;
  mutable HostNumbers host_exponent_;
};

template <typename Type>
OpPointer two_inputs(OpArguments& arguments) {
  arguments.expect_inputs(2, 2);
  return std::make_unique<Type>(arguments);
}

template <typename Type>
OpPointer any_inputs(OpArguments& arguments) {
  const size_t count = std::max<size_t>(1, arguments.node().inputs.size());
  arguments.expect_inputs(count, count);
  return std::make_unique<Type>(arguments);
}

}  // namespace

OpPointer make_add(OpArguments& arguments) { return two_inputs<AddOp>(arguments); }
OpPointer make_sub(OpArguments& arguments) { return two_inputs<SubOp>(arguments); }
OpPointer make_mul(OpArguments& arguments) { return two_inputs<MulOp>(arguments); }
OpPointer make_div(OpArguments& arguments) { return two_inputs<DivOp>(arguments); }
OpPointer make_mod(OpArguments& arguments) { return two_inputs<ModOp>(arguments); }
OpPointer make_pow(OpArguments& arguments) { return two_inputs<PowOp>(arguments); }
OpPointer make_min(OpArguments& arguments) { return any_inputs<MinOp>(arguments); }
OpPointer make_max(OpArguments& arguments) { return any_inputs<MaxOp>(arguments); }
OpPointer make_sum(OpArguments& arguments) { return any_inputs<AddOp>(arguments); }
OpPointer make_mean(OpArguments& arguments) { return any_inputs<MeanOp>(arguments); }

}  // namespace fcp
