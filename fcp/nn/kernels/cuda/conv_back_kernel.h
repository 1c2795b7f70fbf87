// The launch of conv_back_cuda.h's kernel, free of libtorch so that nvcc need not read it.
#pragma once

#include <cstdint>

namespace fcp {

// Coefficients of a convolution's outputs [images, filters, high, wide] and where they go back to,
// [images, channels, to_high, to_wide]. Weights [filters, channels / groups, kernel].
struct ConvBack {
  int64_t images = 0;
  int filters = 0, high = 0, wide = 0;
  int channels = 0, to_high = 0, to_wide = 0;
  int kernel_high = 0, kernel_wide = 0;
  int stride_down = 1, stride_across = 1;
  int begin_down = 0, begin_across = 0;  // padding
  int groups = 1;
};

// Whether the outputs of an image fit the shared memory that every supported device has.
bool fits_conv_back(const ConvBack& shape, int64_t bytes_per_number);

// Starts on `stream` (a cudaStream_t) and returns what CUDA says is wrong, or null.
template <typename T>
const char* launch_conv_back(const ConvBack& shape, const T* from, const T* weights, T* to,
                             void* stream);

}  // namespace fcp
