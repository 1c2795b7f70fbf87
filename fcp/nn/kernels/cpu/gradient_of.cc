#include "fcp/nn/kernels/cpu/gradient_of.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

namespace fcp {
namespace {

struct GradientOf : public torch::autograd::Function<GradientOf> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor&,
                               const torch::Tensor& value) {
    return value.detach();
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list gradients) {
    return {gradients[0], torch::Tensor()};
  }
};

}  // namespace

bool wants_gradient(const torch::Tensor& x) {
  return torch::GradMode::is_enabled() && x.requires_grad();
}

torch::Tensor with_gradient_of(const torch::Tensor& differentiable, const torch::Tensor& value) {
  return GradientOf::apply(differentiable, value);
}

}  // namespace fcp
