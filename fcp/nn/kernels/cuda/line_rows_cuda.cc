#include "fcp/nn/kernels/cuda/line_rows_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cuda/line_rows_kernel.h"

namespace fcp {
namespace {

constexpr int64_t kMostDeviceRows = int64_t{1} << 31;  // a warp each, eight in a block

void check_lines(const char* wrong) {
  if (wrong) fail("the CUDA lines could not start: ", wrong);
}

// [S, rows, D], where the D numbers lie side by side; S and rows may have steps of 0.
torch::Tensor side_by_side(const torch::Tensor& a, int64_t rows) {
  const torch::Tensor flat = a.reshape({a.size(0), rows, -1});
  return flat.size(2) == 1 || flat.stride(2) == 1 ? flat : flat.contiguous();
}

template <typename T>
DeviceRows<T> device_rows(const torch::Tensor& flat) {
  return {flat.data_ptr<T>(), flat.size(0),   flat.size(1),
          flat.size(2),       flat.stride(0), flat.stride(1)};
}

template <typename T>
void run_device_lines(const torch::Tensor& flat, const SideLines& lines, torch::Tensor& out,
                      torch::Tensor& sums) {
  const DeviceLines<T> met = {lines.plus_slope.data_ptr<T>(), lines.plus_bias.data_ptr<T>(),
                              lines.minus_slope.data_ptr<T>(), lines.minus_bias.data_ptr<T>()};
  check_lines(launch_lines<T>(device_rows<T>(flat), met, out.data_ptr<T>(), sums.data_ptr<T>(),
                              c10::cuda::getCurrentCUDAStream().stream()));
}

template <typename T>
void run_device_reach(const torch::Tensor& flat, const torch::Tensor& x, const torch::Tensor& scale,
                      RowReach& result) {
  check_lines(launch_reach<T>(device_rows<T>(flat), x.data_ptr<T>(),
                              scale.defined() ? scale.data_ptr<T>() : nullptr,
                              result.value.data_ptr<T>(), result.reach.data_ptr<T>(),
                              result.size.defined() ? result.size.data_ptr<T>() : nullptr,
                              c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace

bool takes_cuda_loops(const torch::Tensor& a) {
  return a.is_cuda() && a.dim() > 1 && a.size(0) * a.size(1) < kMostDeviceRows;
}

torch::Tensor along_lines_cuda(const torch::Tensor& a, const SideLines& lines, int64_t rows,
                               torch::Tensor& bias) {
  const c10::cuda::CUDAGuard device(a.device());
  const torch::Tensor flat = side_by_side(a, rows);
  torch::Tensor out = torch::empty(a.sizes(), a.options());
  torch::Tensor sums = bias.clone(at::MemoryFormat::Contiguous);
  if (a.scalar_type() == torch::kFloat)
    run_device_lines<float>(flat, lines, out, sums);
  else
    run_device_lines<double>(flat, lines, out, sums);
  bias = sums;
  return out;
}

RowReach row_reach_cuda(const torch::Tensor& a, const torch::Tensor& x, const torch::Tensor& scale,
                        bool with_size) {
  const c10::cuda::CUDAGuard device(a.device());
  const torch::Tensor flat = side_by_side(a, x.size(0));
  const auto sums = [&] { return torch::empty({a.size(0), x.size(0)}, a.options()); };
  RowReach result = {sums(), sums(), with_size ? sums() : torch::Tensor()};
  if (a.scalar_type() == torch::kFloat)
    run_device_reach<float>(flat, x, scale, result);
  else
    run_device_reach<double>(flat, x, scale, result);
  return result;
}

}  // namespace fcp
