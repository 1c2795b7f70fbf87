// The launches of monotone_cuda.h's kernels, free of libtorch so that nvcc need not read it.
#pragma once

#include <cstdint>

namespace fcp {

// Pointers to memory of the device; [rows, outputs] doubles.
struct DeviceMovedRows {
  const double* low = nullptr;
  const double* high = nullptr;
  const double* width = nullptr;
  bool from_zero = false;
  int64_t rows = 0;
  int64_t outputs = 0;
};

struct DeviceGrownRows {
  const double* center = nullptr;
  const double* quantiles = nullptr;  // [rows, outputs, levels]
  int64_t levels = 0;
  int64_t rows = 0;
  int64_t outputs = 0;
};

// All start on `stream` (a cudaStream_t) and return what CUDA says is wrong, or null.
// truth [rows, outputs] → scores [rows].
const char* launch_scores(const DeviceMovedRows& rows, const double* truth, double* scores,
                          void* stream);
const char* launch_scores(const DeviceGrownRows& rows, const double* truth, double* scores,
                          void* stream);
// radius [rows] → lower and upper ends, [2, rows, outputs].
const char* launch_ends(const DeviceMovedRows& rows, const double* radius, double* ends,
                        void* stream);
const char* launch_ends(const DeviceGrownRows& rows, const double* radius, double* ends,
                        void* stream);

}  // namespace fcp
