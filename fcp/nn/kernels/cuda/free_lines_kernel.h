// The launches of free_lines_cuda.h's kernels, free of libtorch so that nvcc need not read it.
#pragma once

#include "fcp/nn/kernels/cuda/line_rows_kernel.h"

namespace fcp {

// Lines for coefficients above 0 and below: those of one sign have slopes [S, N, D] of their own,
// those of the other [N, D]; intercepts are [N, D].
template <typename T>
struct DeviceFreeLines {
  const T *slope = nullptr, *bias = nullptr;              // the free ones
  const T *fixed_slope = nullptr, *fixed_bias = nullptr;  // the others
  bool plus = true;                                       // the free ones are those above 0
};

// Both start on `stream` (a cudaStream_t) and return what CUDA says is wrong, or null. `out`
// [S, N, D]; `sums` [S, N].
template <typename T>
const char* launch_free_lines(const DeviceRows<T>& a, const DeviceFreeLines<T>& lines, T* out,
                              T* sums, void* stream);
// From the gradients of both to those of a, which may be null, and of the free slopes, [S, N, D].
template <typename T>
const char* launch_free_slopes(const DeviceRows<T>& a, const DeviceFreeLines<T>& lines,
                               const T* of_out, const T* of_sums, T* of_a, T* of_slope,
                               void* stream);

}  // namespace fcp
