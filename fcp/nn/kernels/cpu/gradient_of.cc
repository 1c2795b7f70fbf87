#include "fcp/nn/kernels/cpu/gradient_of.h"

#include <algorithm>
#include <vector>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "fcp/nn/kernels/cpu/dense_conv.h"

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

namespace {

// Integers among what autograd keeps.
std::vector<int64_t> kept(torch::autograd::AutogradContext* context, const char* name) {
  return context->saved_data[name].toIntVector();
}

struct ConvGradient : public torch::autograd::Function<ConvGradient> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& w, const torch::Tensor& value,
                               const std::vector<int64_t>& strides,
                               const std::vector<int64_t>& dilations,
                               const std::vector<int64_t>& begins,
                               const std::vector<int64_t>& common) {
    context->save_for_backward({w});
    context->saved_data["strides"] = strides;
    context->saved_data["dilations"] = dilations;
    context->saved_data["begins"] = begins;
    context->saved_data["common"] = common;
    context->saved_data["sizes"] = x.sizes().vec();
    return value.detach();
  }

  // The transposed convolution gives the gradient of what the windows touch, but for the padding
  // that both ends have in common; it is cropped or filled up to x.
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const torch::Tensor w = context->get_saved_variables()[0];
    const std::vector<int64_t> begins = kept(context, "begins"), sizes = kept(context, "sizes");
    const std::vector<int64_t> common = kept(context, "common"), none(begins.size(), 0);
    const torch::Tensor touched =
        torch::convolution(gradients[0].contiguous(), w, {}, kept(context, "strides"), common,
                           kept(context, "dilations"), /*transposed=*/true, none, 1);
    std::vector<int64_t> pads;  // from the last axis on
    for (size_t i = begins.size(); i-- > 0;) {
      const int64_t before = common[i] - begins[i];
      const int64_t size = touched.size(static_cast<int64_t>(i) + 2);
      pads.insert(pads.end(), {before, sizes[i + 2] - size - before});
    }
    return {torch::constant_pad_nd(touched, pads), {}, {}, {}, {}, {}, {}};
  }
};

}  // namespace

torch::Tensor with_conv_gradient(const torch::Tensor& x, const torch::Tensor& w,
                                 const torch::Tensor& value, const ConvPlan& plan) {
  std::vector<int64_t> common;
  for (size_t i = 0; i < plan.begins.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t reach = plan.dilations[i] * (w.size(axis) - 1) + 1;
    // Of the padding at the end, what the last window touches.
    const int64_t end =
        (plan.places[i] - 1) * plan.strides[i] + reach - plan.begins[i] - x.size(axis);
    common.push_back(std::max<int64_t>(0, std::min({plan.begins[i], end, (reach - 1) / 2})));
  }
  return ConvGradient::apply(x, w, value, plan.strides, plan.dilations, plan.begins, common);
}

}  // namespace fcp
