#include "fcp/nn/kernels/cuda/free_lines_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cuda/free_lines_kernel.h"

namespace fcp {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

void check_free_launch(const char* wrong) {
  if (wrong) fail("the CUDA lines could not start: ", wrong);
}

// [S, N, D], where the D numbers lie side by side; S and N may have steps of 0.
torch::Tensor rows_side_by_side(const torch::Tensor& a) {
  const torch::Tensor flat = a.reshape({a.size(0), a.size(1), -1});
  return flat.size(2) == 1 || flat.stride(2) == 1 ? flat : flat.contiguous();
}

template <typename T>
DeviceRows<T> free_rows(const torch::Tensor& flat) {
  return {flat.data_ptr<T>(), flat.size(0),   flat.size(1),
          flat.size(2),       flat.stride(0), flat.stride(1)};
}

template <typename T>
DeviceFreeLines<T> free_lines(const tensor_list& met, bool plus) {
  return {met[1].data_ptr<T>(), met[2].data_ptr<T>(), met[3].data_ptr<T>(), met[4].data_ptr<T>(),
          plus};
}

void* current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

template <typename T>
void run_free_lines(const tensor_list& met, bool plus, torch::Tensor& out, torch::Tensor& sums) {
  check_free_launch(launch_free_lines<T>(free_rows<T>(met[0]), free_lines<T>(met, plus),
                                         out.data_ptr<T>(), sums.data_ptr<T>(), current_stream()));
}

template <typename T>
void run_free_slopes(const tensor_list& met, bool plus, const tensor_list& of, torch::Tensor& of_a,
                     torch::Tensor& of_slope) {
  check_free_launch(launch_free_slopes<T>(
      free_rows<T>(met[0]), free_lines<T>(met, plus), of[0].data_ptr<T>(), of[1].data_ptr<T>(),
      of_a.defined() ? of_a.data_ptr<T>() : nullptr, of_slope.data_ptr<T>(), current_stream()));
}

// A gradient that nothing asked for is 0.
torch::Tensor given_or_zeros(const torch::Tensor& gradient, const torch::Tensor& like,
                             const std::vector<int64_t>& shape) {
  return gradient.defined() ? gradient.contiguous() : torch::zeros(shape, like.options());
}

struct FreeLinesFunction : public torch::autograd::Function<FreeLinesFunction> {
  // a [S, N, D] with its numbers side by side; the others have no gaps.
  static tensor_list forward(AutogradContext* context, const torch::Tensor& a,
                             const torch::Tensor& slope, const torch::Tensor& bias,
                             const torch::Tensor& fixed_slope, const torch::Tensor& fixed_bias,
                             bool plus) {
    const c10::cuda::CUDAGuard device(a.device());
    context->save_for_backward({a, slope, bias, fixed_slope, fixed_bias});
    context->saved_data["plus"] = plus;
    torch::Tensor out = torch::empty(a.sizes(), a.options());
    torch::Tensor sums = torch::empty({a.size(0), a.size(1)}, a.options());
    const tensor_list met = {a, slope, bias, fixed_slope, fixed_bias};
    if (a.scalar_type() == torch::kFloat)
      run_free_lines<float>(met, plus, out, sums);
    else
      run_free_lines<double>(met, plus, out, sums);
    return {out, sums};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const tensor_list met = context->get_saved_variables();
    const torch::Tensor& a = met[0];
    const c10::cuda::CUDAGuard device(a.device());
    const tensor_list of = {given_or_zeros(gradients[0], a, a.sizes().vec()),
                            given_or_zeros(gradients[1], a, {a.size(0), a.size(1)})};
    torch::Tensor of_slope = torch::empty(a.sizes(), a.options());
    torch::Tensor of_a =
        context->needs_input_grad(0) ? torch::empty(a.sizes(), a.options()) : torch::Tensor();
    const bool plus = context->saved_data["plus"].toBool();
    if (a.scalar_type() == torch::kFloat)
      run_free_slopes<float>(met, plus, of, of_a, of_slope);
    else
      run_free_slopes<double>(met, plus, of, of_a, of_slope);
    return {of_a, of_slope, {}, {}, {}, {}};
  }
};

}  // namespace

bool takes_free_lines_cuda(const torch::Tensor& a, int64_t rows) {
  constexpr int64_t kMostFreeRows = int64_t{1} << 31;
  return a.is_cuda() && a.dim() > 1 && a.numel() > 0 && a.size(1) == rows &&
         a.size(0) * a.size(1) < kMostFreeRows &&
         (a.scalar_type() == torch::kFloat || a.scalar_type() == torch::kDouble);
}

HingeResult along_free_lines_cuda(const torch::Tensor& a, const OneHinge& lines) {
  const int64_t rows = a.size(1);
  const auto met = [&](const torch::Tensor& values) {
    return values.to(a.scalar_type()).expand(a.sizes().slice(1)).reshape({rows, -1}).contiguous();
  };
  const torch::Tensor slope =
      lines.slope.expand(a.sizes()).reshape({a.size(0), rows, -1}).contiguous();
  const tensor_list made =
      FreeLinesFunction::apply(rows_side_by_side(a), slope, met(lines.bias), met(lines.fixed_slope),
                               met(lines.fixed_bias), lines.plus);
  return {made[0].view(a.sizes()), made[1]};
}

}  // namespace fcp
