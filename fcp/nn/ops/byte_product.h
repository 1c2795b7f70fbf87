// An operator that multiplies by constant weights, as the runtime asks it to do so in bytes
// (fcp/nn/runtime/fuse_bytes.h). Conv, Gemm and MatMul are such operators.
#pragma once

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/byte_conv.h"

namespace fcp {

class ByteProduct {
 public:
  virtual ~ByteProduct() = default;

  // The operator's weights as filters [M, C, y, x]; undefined where it cannot do it in bytes.
  virtual torch::Tensor byte_filters(const torch::Tensor& w) const = 0;

  // What forward makes of (x − x_zero) and the filters, and what follows; undefined likewise.
  virtual torch::Tensor forward_bytes(const torch::Tensor& x, int32_t x_zero,
                                      const ByteFilters& filters, const ByteEnd& end) const = 0;
};

}  // namespace fcp
