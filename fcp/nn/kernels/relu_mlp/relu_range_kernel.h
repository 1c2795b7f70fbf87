// The launches of relu_range_cuda.h's kernels, free of libtorch so that nvcc need not read it.
#pragma once

#include <cstdint>

namespace fcp {

// A Linear–ReLU–Linear head and rows of features. Pointers to memory of the device.
struct DeviceReluRange {
  const float* features = nullptr;  // [rows, width]
  const float* w1 = nullptr;        // transposed: [width, hidden]
  const float* b1 = nullptr;        // [hidden]
  const float* w2 = nullptr;        // [outputs, hidden]
  const float* b2 = nullptr;        // [outputs]
  const float* moves = nullptr;     // [outputs, hidden]
  double widening = 0;
  int64_t rows = 0;
  int width = 0, hidden = 0, outputs = 0;
};

// Whether a head of that size fits the shared memory that every supported device has.
bool fits_relu_range(int64_t hidden, int64_t outputs);

// Both start on `stream` (a cudaStream_t) and return what CUDA says is wrong, or null.
// truth [rows, outputs] → radius [rows].
const char* launch_relu_radii(const DeviceReluRange& range, const double* truth, double* radius,
                              void* stream);
// radius [rows] → prediction, lower and upper, [3, rows, outputs].
const char* launch_relu_ranges(const DeviceReluRange& range, const double* radius, double* ends,
                               void* stream);

}  // namespace fcp
