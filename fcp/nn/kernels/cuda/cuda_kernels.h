// Whether this build has fcp's CUDA kernels (FCP_CUDA_KERNELS in cmake/FcpTorch.cmake). Without
// them the functions of the headers *_cuda.h are declared and not defined, so callers ask `if
// constexpr (kCudaKernels)`.
#pragma once

namespace fcp {

#ifdef FCP_CUDA
inline constexpr bool kCudaKernels = true;
#else
inline constexpr bool kCudaKernels = false;
#endif

}  // namespace fcp
