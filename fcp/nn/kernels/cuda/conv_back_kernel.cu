// One block for each image, whose coefficients lie in shared memory: every number of the result
// sums over the windows that it is in.
#include <cuda_runtime.h>

#include "fcp/nn/kernels/cuda/conv_back_kernel.h"

namespace fcp {
namespace {

constexpr int kBackThreads = 256;
constexpr int64_t kBackShared = 48 << 10;

template <typename T>
__device__ T back_at(const ConvBack& shape, const T* image, const T* weights, int channel, int y,
                     int x) {
  const int each = shape.channels / shape.groups, filters = shape.filters / shape.groups;
  const int first = channel / each * filters, place = channel % each;
  const int down = y + shape.begin_down, across = x + shape.begin_across;
  const int plane = shape.high * shape.wide, kernel = shape.kernel_high * shape.kernel_wide;
  T sum = 0;
  for (int ky = down % shape.stride_down; ky < shape.kernel_high; ky += shape.stride_down) {
    const int i = (down - ky) / shape.stride_down;
    if (down < ky || i >= shape.high) continue;
    for (int kx = across % shape.stride_across; kx < shape.kernel_wide;
         kx += shape.stride_across) {
      const int j = (across - kx) / shape.stride_across;
      if (across < kx || j >= shape.wide) continue;
      const T* numbers = image + first * plane + i * shape.wide + j;
      const T* weight =
          weights + (first * each + place) * kernel + ky * shape.kernel_wide + kx;
      for (int m = 0; m < filters; ++m) {
        sum = fma(numbers[m * plane], __ldg(weight + m * each * kernel), sum);
      }
    }
  }
  return sum;
}

template <typename T>
__global__ void conv_back_kernel(ConvBack shape, const T* from, const T* weights, T* to) {
  extern __shared__ double shared[];
  T* image = reinterpret_cast<T*>(shared);
  const int size = shape.filters * shape.high * shape.wide;
  const T* own = from + static_cast<int64_t>(blockIdx.x) * size;
  for (int i = threadIdx.x; i < size; i += kBackThreads) image[i] = own[i];
  __syncthreads();
  const int plane = shape.to_high * shape.to_wide, results = shape.channels * plane;
  T* out = to + static_cast<int64_t>(blockIdx.x) * results;
  for (int i = threadIdx.x; i < results; i += kBackThreads) {
    out[i] = back_at(shape, image, weights, i / plane, i % plane / shape.to_wide,
                     i % shape.to_wide);
  }
}

}  // namespace

bool fits_conv_back(const ConvBack& shape, int64_t bytes_per_number) {
  const int64_t numbers = int64_t{shape.filters} * shape.high * shape.wide;
  return numbers * bytes_per_number <= kBackShared && shape.images < int64_t{1} << 31;
}

template <typename T>
const char* launch_conv_back(const ConvBack& shape, const T* from, const T* weights, T* to,
                             void* stream) {
  const auto blocks = static_cast<unsigned>(shape.images);
  const size_t bytes = sizeof(T) * shape.filters * shape.high * shape.wide;
  conv_back_kernel<T><<<blocks, kBackThreads, bytes, static_cast<cudaStream_t>(stream)>>>(
      shape, from, weights, to);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template const char* launch_conv_back(const ConvBack&, const float*, const float*, float*, void*);
template const char* launch_conv_back(const ConvBack&, const double*, const double*, double*,
                                      void*);

}  // namespace fcp
