// Numbers to steps of a byte and back, one scale and zero point for all, in one pass:
//
//   q = clamp(round(x / scale) + zero)        halves to the even number
//   x = (q − zero) · scale
//
// The bits are those of libtorch's operators one after the other. Float32 on the CPU, where the
// numbers lie. Cost: 0.1 ns per number. Tested by tests/nn/ops/quantize_test.cc.
#pragma once

#include <torch/types.h>

namespace fcp {

struct ByteStep {
  float scale = 1;
  int32_t zero = 0;
};

// Whether the numbers lie without gaps, as float32 or as bytes, on the CPU.
bool takes_byte_loops(const torch::Tensor& x);

// `type`: uint8 or int8.
torch::Tensor quantized_bytes(const torch::Tensor& x, const ByteStep& step, torch::ScalarType type);
torch::Tensor dequantized_bytes(const torch::Tensor& q, const ByteStep& step);

}  // namespace fcp
