#include "fcp/nn/ops/convolution.h"

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {

int64_t read_group(OpArguments& arguments) {
  const int64_t group = arguments.integer("group", 1);
  if (group < 1 || group > kMaxElements) {
    fail(describe(arguments.node()), ": group is ", group, ", expected a positive number");
  }
  return group;
}

void check_convolution(const Tensors& inputs, int64_t group, const Node& node) {
  const torch::Tensor& x = inputs[0];
  const torch::Tensor& w = inputs[1];
  expect_rank(x, 3, 5, node, "X");
  expect_floating(x, node, "X");
  expect_rank(w, x.dim(), x.dim(), node, "W");
  expect_type_of(x, w, node, "W");
  if (w.numel() == 0) {
    fail(describe(node), ": W has shape ", shape_text(w.sizes()), ", expected no empty dimension");
  }
  if (w.size(0) % group != 0) {
    fail(describe(node), ": W has ", w.size(0), " filters, expected a multiple of group = ", group);
  }
}

torch::Tensor checked_bias(const Tensors& inputs, int64_t channels, const Node& node) {
  if (inputs.size() < 3 || !inputs[2].defined()) return {};
  expect_vector(inputs[2], channels, node, "B");
  expect_type_of(inputs[0], inputs[2], node, "B");
  return inputs[2].contiguous();
}

double kernel_flops(const torch::Tensor& places, const torch::Tensor& w) {
  const auto per_place = static_cast<double>(w.numel() / w.size(0));
  return 2.0 * static_cast<double>(places.numel()) * per_place;
}

BoundRule Convolution::bound_rule(const std::vector<bool>& constant) const {
  return affine_in_first(constant);
}

std::vector<Range> Convolution::interval(const std::vector<Range>& inputs, double) const {
  return product_interval(*this, inputs);
}

double Convolution::roundings(const Tensors& inputs) const {
  return static_cast<double>(inputs[1].numel() / inputs[1].size(0)) + 2;
}

Op::BallOutput Convolution::over_ball(const BallInput& ball, const Tensors& inputs) const {
  return product_over_ball(*this, ball, inputs, 1, {});
}

}  // namespace fcp
