// Adam (Kingma and Ba, 2015) for a stack of networks: parameters [S, P] at once, with a rate of
// their own for the first `scales` parameters of each network. On the CPU one pass over memory,
// shared among libtorch's threads; elsewhere libtorch's own operations.
// Tested by tests/training/member_stack_test.cc.
#pragma once

#include <cstdint>

#include <torch/types.h>

namespace fcp {

class StackAdam {
 public:
  StackAdam(const torch::Tensor& parameters, int64_t scales, double scale_factor);

  // The rate of the first `scales` parameters is `rate` times scale_factor.
  void step(torch::Tensor& parameters, const torch::Tensor& gradient, double rate);

  void keep(const torch::Tensor& networks);

 private:
  int64_t scales_;
  double scale_factor_;
  int64_t steps_ = 0;
  torch::Tensor mean_;
  torch::Tensor square_;
};

// One step on `count` numbers: root = 1/√(1 − β₂ᵗ), and `rate` holds 1/(1 − β₁ᵗ).
void adam_pass(float* parameters, const float* gradient, float* mean, float* square, int64_t count,
               float rate, float root);

}  // namespace fcp
