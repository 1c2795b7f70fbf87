#include "fcp/nn/kernels/cuda/conv_back_cuda.h"

#include <algorithm>
#include <vector>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cuda/conv_back_kernel.h"

namespace fcp {
namespace {

constexpr int64_t kMostBackTerms = 256;  // above, libraries are faster

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

ConvBack back_shape(const torch::Tensor& a, const torch::Tensor& w, const ConvPlan& plan,
                    int64_t high, int64_t wide) {
  ConvBack shape;
  shape.images = a.size(0);
  shape.filters = static_cast<int>(a.size(1));
  shape.high = static_cast<int>(a.size(2));
  shape.wide = static_cast<int>(a.size(3));
  shape.channels = static_cast<int>(w.size(1) * plan.groups);
  shape.to_high = static_cast<int>(high);
  shape.to_wide = static_cast<int>(wide);
  shape.kernel_high = static_cast<int>(w.size(2));
  shape.kernel_wide = static_cast<int>(w.size(3));
  shape.stride_down = static_cast<int>(plan.strides[0]);
  shape.stride_across = static_cast<int>(plan.strides[1]);
  shape.begin_down = static_cast<int>(plan.begins[0]);
  shape.begin_across = static_cast<int>(plan.begins[1]);
  shape.groups = static_cast<int>(plan.groups);
  return shape;
}

struct ConvBackFunction : public torch::autograd::Function<ConvBackFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const torch::Tensor& weights, const ConvPlan& plan, int64_t high,
                               int64_t wide) {
    const c10::cuda::CUDAGuard device(given.device());
    const torch::Tensor a = given.contiguous(), w = weights.contiguous();
    const ConvBack shape = back_shape(a, w, plan, high, wide);
    const torch::Tensor out = torch::empty({shape.images, shape.channels, high, wide}, a.options());
    void* const stream = c10::cuda::getCurrentCUDAStream().stream();
    const char* wrong = a.scalar_type() == torch::kFloat
                            ? launch_conv_back(shape, a.data_ptr<float>(), w.data_ptr<float>(),
                                               out.data_ptr<float>(), stream)
                            : launch_conv_back(shape, a.data_ptr<double>(), w.data_ptr<double>(),
                                               out.data_ptr<double>(), stream);
    if (wrong) fail("the CUDA convolution could not start: ", wrong);
    context->save_for_backward({w});
    context->saved_data["strides"] = plan.strides;
    context->saved_data["group"] = plan.groups;
    std::vector<int64_t> pads;  // from the last axis on; the last window decides the end
    for (const int64_t axis : {1, 0}) {
      const auto i = static_cast<size_t>(axis);
      const int64_t reach = (a.size(axis + 2) - 1) * plan.strides[i] + w.size(axis + 2);
      pads.insert(pads.end(), {plan.begins[i], reach - plan.begins[i] - (axis == 0 ? high : wide)});
    }
    context->saved_data["pads"] = pads;
    return out;
  }

  // The convolution itself.
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const torch::Tensor w = context->get_saved_variables()[0];
    const torch::Tensor padded =
        torch::constant_pad_nd(gradients[0], context->saved_data["pads"].toIntVector());
    const std::vector<int64_t> none(2, 0), one(2, 1);
    return {
        torch::convolution(padded, w, {}, context->saved_data["strides"].toIntVector(), none, one,
                           /*transposed=*/false, none, context->saved_data["group"].toInt()),
        {},
        {},
        {},
        {}};
  }
};

}  // namespace

bool takes_conv_back_cuda(const torch::Tensor& a, const torch::Tensor& w, const ConvPlan& plan) {
  if (!a.is_cuda() || a.dim() != 4 || a.numel() == 0 || a.scalar_type() != w.scalar_type()) {
    return false;
  }
  if (a.scalar_type() != torch::kFloat && a.scalar_type() != torch::kDouble) return false;
  if (plan.dilations != std::vector<int64_t>(2, 1)) return false;
  if (plan.begins[0] < 0 || plan.begins[1] < 0) return false;
  int64_t terms = a.size(1) / plan.groups;
  for (const size_t i : {0, 1}) {
    terms *= (w.size(static_cast<int64_t>(i) + 2) + plan.strides[i] - 1) / plan.strides[i];
  }
  return terms <= kMostBackTerms &&
         fits_conv_back(back_shape(a, w, plan, 1, 1), static_cast<int64_t>(a.element_size()));
}

torch::Tensor conv_back_cuda(const torch::Tensor& a, const torch::Tensor& w, const ConvPlan& plan,
                             int64_t high, int64_t wide) {
  return ConvBackFunction::apply(a, w, plan, high, wide);
}

}  // namespace fcp
