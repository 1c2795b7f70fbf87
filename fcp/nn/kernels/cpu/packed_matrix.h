// A right factor, packed, in either type.
#pragma once

#include <memory>

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

struct PackedMatrix {
  torch::ScalarType type = torch::kFloat;
  PackedPanels<float> floats;
  PackedPanels<double> doubles;
  bool finite = false;  // known to have neither infinities nor NaN
};

// b [K, M] with any strides.
std::shared_ptr<PackedMatrix> pack_matrix(const torch::Tensor& b);

}  // namespace fcp
