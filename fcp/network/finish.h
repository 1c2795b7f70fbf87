// What follows a product or a convolution and is done by it (bending.h). Tested by
// tests/network/finish_test.cc.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/network/bending.h"

namespace fcp {

// Behind a product or a convolution: bias, one number for each column, then what is added to each
// number, then the activation; undefined: nothing.
struct Finish {
  torch::Tensor bias, added;
  Bending activation;
  std::vector<torch::Tensor> joined;  // parts whose channels make up the input, not given then
};

// f of all numbers of x, float32 on the CPU, in the order in which they lie in memory.
torch::Tensor activated(const torch::Tensor& x, const Bending& activation);

}  // namespace fcp
