#include "fcp/nn/ops/shared.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/ops/types.h"
#include "fcp/nn/runtime/device_waits.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

class UnaryOp : public Op {
 public:
  UnaryOp(UnaryFunction function, Curve curve, BoundRule rule)
      : function_(std::move(function)), curve_(std::move(curve)), rule_(rule) {}
  Tensors forward(const Tensors& inputs) const override { return {function_(inputs[0])}; }
  BoundRule bound_rule(const std::vector<bool>&) const override {
    return curve_.value ? BoundRule::kCurve : rule_;
  }
  Curve curve(const Tensors&) const override { return curve_; }

 private:
  UnaryFunction function_;
  Curve curve_;
  BoundRule rule_;
};

}  // namespace

std::unique_ptr<Op> unary_op(UnaryFunction function, Curve curve, BoundRule rule) {
  return std::make_unique<UnaryOp>(std::move(function), std::move(curve), rule);
}

std::unique_ptr<Op> floating_unary_op(OpArguments& arguments, UnaryFunction function, Curve curve) {
  const auto alike = [function = std::move(function)](const torch::Tensor& x) {
    return each_alike(function, x);
  };
  return alike_unary_op(arguments, alike, std::move(curve));
}

std::unique_ptr<Op> alike_unary_op(OpArguments& arguments, UnaryFunction function, Curve curve) {
  arguments.expect_inputs(1, 1);
  return unary_op(
      [where = describe(arguments.node()), function = std::move(function)](const torch::Tensor& x) {
        if (!x.is_floating_point()) {
          fail(where, ": input is ", x.scalar_type(), ", expected floating-point numbers");
        }
        return function(x);
      },
      std::move(curve));
}

UnaryFunction own_activation(UnaryFunction function, const FusedActivation& activation) {
  return [function = std::move(function), activation](const torch::Tensor& x) {
    if (!x.is_cpu() || x.scalar_type() != torch::kFloat) return each_alike(function, x);
    const torch::Tensor own = activated(x, activation);
    return wants_gradient(x) ? with_gradient_of(function(x), own) : own;
  };
}

Curve make_curve(UnaryFunction value, UnaryFunction slope, std::vector<int> curvature,
                 std::vector<double> knots) {
  Curve curve;
  const auto alike = [](UnaryFunction f) -> UnaryFunction {
    return [f = std::move(f)](const torch::Tensor& x) { return each_alike(f, x); };
  };
  // Straight pieces take exact arithmetic alone.
  const bool curved =
      std::any_of(curvature.begin(), curvature.end(), [](int sign) { return sign != 0; });
  curve.value = curved ? alike(std::move(value)) : std::move(value);
  curve.slope = curved ? alike(std::move(slope)) : std::move(slope);
  curve.curvature = std::move(curvature);
  curve.knots = std::move(knots);
  return curve;
}

Curve make_rising_curve(UnaryFunction value, UnaryFunction slope, std::vector<int> curvature,
                        std::vector<double> knots) {
  Curve curve =
      make_curve(std::move(value), std::move(slope), std::move(curvature), std::move(knots));
  curve.rising = true;
  return curve;
}

std::vector<int64_t> broadcast_shape(torch::IntArrayRef a, torch::IntArrayRef b, const Node& node) {
  const torch::IntArrayRef longer = a.size() >= b.size() ? a : b;
  const torch::IntArrayRef shorter = a.size() >= b.size() ? b : a;
  std::vector<int64_t> result(longer.begin(), longer.end());
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dimension = result[offset + i];
    if (dimension != shorter[i] && dimension != 1 && shorter[i] != 1) {
      fail(describe(node), ": shapes ", a, " and ", b, " do not broadcast");
    }
    if (dimension == 1) dimension = shorter[i];
  }
  return result;
}

Tensors broadcast_inputs(const Tensors& inputs, const Node& node) {
  torch::Device device = torch::kCPU;
  std::vector<int64_t> shape;
  for (const torch::Tensor& input : inputs) {
    const torch::ScalarType type = input.scalar_type();
    const torch::ScalarType first = inputs[0].scalar_type();
    if (type != first && !(torch::isFloatingType(type) && torch::isFloatingType(first))) {
      fail(describe(node), ": inputs are ", first, " and ", type, ", expected one type");
    }
    shape = broadcast_shape(shape, input.sizes(), node);
    if (!input.is_cpu()) device = input.device();
  }
  Tensors result;
  for (const torch::Tensor& input : inputs) result.push_back(placed_on(input, device));
  return result;
}

torch::Tensor repeat_each(const torch::Tensor& x, int64_t times, int64_t axis) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.insert(shape.begin() + axis + 1, times);
  return x.unsqueeze(axis + 1).expand(shape).flatten(axis, axis + 1);
}

BoundRule affine_in_first(const std::vector<bool>& constant) {
  for (size_t i = 1; i < constant.size(); ++i) {
    if (!constant[i]) return BoundRule::kNone;
  }
  return BoundRule::kAffine;
}

namespace {

// Whether the rows of input 0 may be given twice: they vary, are multiplied by a matrix, and
// nothing is added that differs between them.
bool may_stack(const std::vector<Range>& inputs) {
  const bool varies = !inputs[0].lower.is_same(inputs[0].upper);
  const torch::Tensor added = inputs.size() > 2 ? inputs[2].lower : torch::Tensor();
  return varies && inputs[0].lower.dim() >= 2 && inputs[1].lower.dim() == 2 &&
         (!added.defined() || added.dim() < 2 || added.size(0) == 1);
}

}  // namespace

std::vector<Range> product_interval(const Op& op, const std::vector<Range>& inputs, double factor,
                                    SignedCache* cache) {
  const size_t varying = inputs[0].lower.is_same(inputs[0].upper) ? 1 : 0;
  const torch::Tensor weight = inputs[1 - varying].lower;
  const SignedParts parts = cache != nullptr
                                ? cache->parts(weight)
                                : SignedParts{weight.clamp_min(0), weight.clamp_max(0)};
  const torch::Tensor& with = factor >= 0 ? parts.plus : parts.minus;
  const torch::Tensor& against = factor >= 0 ? parts.minus : parts.plus;
  const auto sum = [&](const torch::Tensor& rising, const torch::Tensor& falling) {
    Tensors arguments(2);
    arguments[varying] = falling;
    arguments[1 - varying] = against;
    const torch::Tensor other = op.forward(arguments)[0];
    arguments[varying] = rising;
    arguments[1 - varying] = with;
    if (inputs.size() > 2) arguments.push_back(inputs[2].lower);
    return op.forward(arguments)[0] + other;
  };
  const Range& x = inputs[varying];
  if (cache == nullptr || !may_stack(inputs)) {
    return {{sum(x.lower, x.upper), sum(x.upper, x.lower)}};
  }
  const int64_t rows = x.lower.size(0);
  const torch::Tensor both = sum(torch::cat({x.lower, x.upper}), torch::cat({x.upper, x.lower}));
  return {{both.narrow(0, 0, rows), both.narrow(0, rows, rows)}};
}

Op::BallOutput product_over_ball(const Op& op, const Op::BallInput& ball, const Tensors& inputs,
                                 double factor, const torch::Tensor& columns) {
  Tensors arguments = inputs;
  arguments[0] = ball.center;
  const torch::Tensor center = op.forward(arguments)[0];
  const torch::Tensor& weight = inputs[1];
  const torch::Tensor scale = ball.scale.expand_as(ball.center.narrow(0, 0, 1));
  if (ball.shape == Op::BallShape::kBox) {
    return {center, op.forward({scale, weight.abs()})[0].abs()};
  }
  if (ball.shape == Op::BallShape::kDiamond && columns.defined()) {
    const torch::Tensor largest = (columns.abs() * scale.reshape({-1, 1})).amax(0, true);
    return {center, largest * std::abs(factor)};
  }
  torch::Tensor reach = (op.forward({scale.square(), weight.square()})[0] * factor).sqrt();
  if (ball.shape == Op::BallShape::kDiamond) {
    reach = reach.clamp_max(weight.abs().max() * scale.max() * std::abs(factor));
  }
  return {center, reach};
}

torch::Tensor to_narrow(const torch::Tensor& x, int64_t type, bool saturate) {
  if (is_narrow_float(type)) {
    torch::Tensor result = x.detach().to(torch::kCPU, torch::kFloat).contiguous().clone();
    float* numbers = result.data_ptr<float>();
    for (int64_t i = 0; i < result.numel(); ++i) {
      numbers[i] = static_cast<float>(to_narrow_float(numbers[i], type, saturate));
    }
    return result.to(x.device());
  }
  const NarrowInteger integer = narrow_integer(type);
  const torch::ScalarType wide = scalar_type(type_of_number(type, Node{}));
  const int64_t count = int64_t{1} << integer.bits, least = integer.is_signed ? -count / 2 : 0;
  if (x.is_floating_point()) {
    const torch::Tensor cut = x.to(torch::kDouble).trunc();
    return cut.clamp(static_cast<double>(least), static_cast<double>(least + count - 1)).to(wide);
  }
  return ((x.to(torch::kLong) - least).bitwise_and(count - 1) + least).to(wide);
}

std::vector<int64_t> to_integers(const torch::Tensor& tensor, const Node& node, const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (tensor.dim() > 1 || !torch::isIntegralType(tensor.scalar_type(), /*includeBool=*/false)) {
    fail(describe(node), ": ", what, " must be integers in one dimension, found ",
         tensor.scalar_type(), " of rank ", tensor.dim());
  }
  const torch::Tensor wide = tensor.to(torch::kCPU, torch::kLong).contiguous();
  const int64_t* data = wide.data_ptr<int64_t>();
  return {data, data + wide.numel()};
}

int64_t normalize_axis(int64_t axis, int64_t rank, const Node& node) {
  if (axis < -rank || axis >= rank) {
    fail(describe(node), ": axis ", axis, " is outside a tensor of rank ", rank);
  }
  return axis < 0 ? axis + rank : axis;
}

int64_t checked_elements(const std::vector<int64_t>& shape, const Node& node) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0) fail(describe(node), ": asks for a dimension of ", dimension);
    if (dimension > 0 && elements > kMaxElements / dimension) {
      fail(describe(node), ": asks for a tensor of more than ", kMaxElements, " elements");
    }
    elements *= dimension;
  }
  return elements;
}

std::string shape_text(torch::IntArrayRef shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void expect_rank(const torch::Tensor& tensor, int64_t least, int64_t most, const Node& node,
                 const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (tensor.dim() < least || tensor.dim() > most) {
    fail(describe(node), ": ", what, " has shape ", shape_text(tensor.sizes()),
         ", expected a tensor of rank ", least, least == most ? "" : concat(" to ", most));
  }
}

void expect_floating(const torch::Tensor& tensor, const Node& node, const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (!tensor.is_floating_point()) {
    fail(describe(node), ": ", what, " is of type ", tensor.scalar_type(),
         ", expected floating-point numbers");
  }
}

void expect_type_of(const torch::Tensor& data, const torch::Tensor& tensor, const Node& node,
                    const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (tensor.scalar_type() != data.scalar_type()) {
    fail(describe(node), ": ", what, " is of type ", tensor.scalar_type(), ", expected ",
         data.scalar_type(), " as the first input");
  }
}

void expect_vector(const torch::Tensor& tensor, int64_t size, const Node& node, const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (tensor.dim() != 1 || tensor.size(0) != size) {
    fail(describe(node), ": ", what, " has shape ", shape_text(tensor.sizes()), ", expected [",
         size, "]");
  }
}

void expect_broadcast(const torch::Tensor& tensor, torch::IntArrayRef shape, const Node& node,
                      const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  const int64_t rank = static_cast<int64_t>(shape.size());
  bool fits = tensor.dim() <= rank;
  for (int64_t i = 1; fits && i <= tensor.dim(); ++i) {
    const int64_t size = tensor.size(tensor.dim() - i);
    fits = size == 1 || size == shape[static_cast<size_t>(rank - i)];
  }
  if (!fits) {
    fail(describe(node), ": ", what, " has shape ", shape_text(tensor.sizes()),
         ", which does not broadcast to ", shape_text(shape));
  }
}

void check_sample(std::vector<int64_t> shape, const Node& node) {
  if (!shape.empty()) shape[0] = 1;
  checked_elements(shape, node);
}

}  // namespace fcp
