// Quantised networks compute in bytes where their files write single precision: with constant
// scales and zero points, and weights whose steps are known,
//
//   DequantizeLinear, Conv | Gemm | MatMul, [Relu | Clip], [QuantizeLinear]    are one step of
//       byte_conv.h, whose sums are exact;
//   QLinearConv, QLinearMatMul and QGemm are likewise one step of it;
//   DequantizeLinear, MaxPool | Flatten | Reshape | Transpose …, QuantizeLinear, of one scale
//       and zero point, are the operator in the middle on bytes.
//
// A result of the first may lie one step beside that of the single nodes where their sum, rounded
// in single precision, falls on the other side of a half. Bounds and gradients take the single
// nodes. Cost: linear in the nodes. Tested by tests/nn/runtime/fuse_bytes_test.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fcp/nn/runtime/network.h"

namespace fcp {

// What a constant was dequantised from.
struct QuantizedConstant {
  torch::Tensor steps, scale, zero;  // zero may be undefined
  int64_t axis = 1;
};

// Those that DequantizeLinear makes of initializers alone, by their names; before constants are
// folded.
std::map<std::string, QuantizedConstant> quantized_constants(const Graph& graph);

// `quantized` by slot.
std::vector<Step> fuse_bytes(const std::vector<Step>& steps, const Tensors& constants,
                             const std::vector<int>& outputs,
                             const std::map<int, QuantizedConstant>& quantized);

}  // namespace fcp
