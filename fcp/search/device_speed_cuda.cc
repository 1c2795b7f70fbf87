#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include "fcp/search/device_speed.h"

namespace fcp {

bool has_fast_doubles(torch::Device device) {
  if (!device.is_cuda()) return false;
  const c10::cuda::CUDAGuard guard(device);
  int current = 0, ratio = 0;
  if (cudaGetDevice(&current) != cudaSuccess) return false;
  const cudaError_t error =
      cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, current);
  return error == cudaSuccess && ratio > 0 && ratio <= 2;
}

}  // namespace fcp
