// The launch of relu_descent_cuda.h's kernel, free of libtorch so that nvcc need not read it.
#pragma once

#include <cstdint>

namespace fcp {

// Pointers to memory of the device; hidden and total are [rows, units], units being 32 or 64.
struct ReluDescent {
  const float* hidden = nullptr;
  const float* truth = nullptr;   // [rows]
  const float* gram = nullptr;    // [units, units]
  const float* weight = nullptr;  // [units]
  float bias = 0;
  float double_rate = 0;  // 2η
  int steps = 0;
  int64_t rows = 0;
  int units = 0;
  float* total = nullptr;  // the result
};

// Starts the kernel on `stream` (a cudaStream_t). Returns what CUDA says is wrong, or null.
const char* launch_relu_descent(const ReluDescent& descent, void* stream);

}  // namespace fcp
