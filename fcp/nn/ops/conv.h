// What Conv and ConvTranspose have in common: checks, and what bounds need to know. Tested by
// tests/nn/ops/linear_test.cc.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/nn/ops/op.h"

namespace fcp {

int64_t read_group(OpArguments& arguments);

// X and W agree in rank and type, and W's first dimension divides into groups.
void check_convolution(const Tensors& inputs, int64_t group, const Node& node);

// The bias without gaps, or an undefined tensor.
torch::Tensor checked_bias(const Tensors& inputs, int64_t channels, const Node& node);

double kernel_flops(const torch::Tensor& places, const torch::Tensor& w);

// Multiplies X by the constant W.
class Convolution : public Op {
 public:
  BoundRule bound_rule(const std::vector<bool>& constant) const final;
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const final;
  // As many terms as a filter has weights.
  double roundings(const Tensors& inputs) const override;
  BallOutput over_ball(const BallInput& ball, const Tensors& inputs) const final;
};

}  // namespace fcp
