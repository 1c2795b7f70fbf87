// The launches of line_rows_cuda.h's kernels, free of libtorch so that nvcc need not read it.
#pragma once

#include <cstdint>

namespace fcp {

// Coefficients [S, N, D] in memory of the device, D of them side by side; a step may be 0.
template <typename T>
struct DeviceRows {
  const T* numbers = nullptr;
  int64_t count = 0, rows = 0, width = 0;  // S, N, D
  int64_t count_step = 0, row_step = 0;    // numbers from one to the next
};

// Of each row n: slopes and intercepts [N, D].
template <typename T>
struct DeviceLines {
  const T *plus_slope = nullptr, *plus_bias = nullptr;
  const T *minus_slope = nullptr, *minus_bias = nullptr;
};

// Both start on `stream` (a cudaStream_t) and return what CUDA says is wrong, or null. `out`
// [S, N, D]; `sums` [S, N], to which is added.
template <typename T>
const char* launch_lines(const DeviceRows<T>& a, const DeviceLines<T>& lines, T* out, T* sums,
                         void* stream);
// x [N, D]; scale [D] or null; value and reach [S, N]; size [S, N] or null.
template <typename T>
const char* launch_reach(const DeviceRows<T>& a, const T* x, const T* scale, T* value, T* reach,
                         T* size, void* stream);

}  // namespace fcp
