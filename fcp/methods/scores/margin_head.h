// The affine end of a head: logits = W u + b of some tensor u on the way, the earliest from which
// nothing but affine operators (Gemm, MatMul, Add, Conv, pooling by averages, reshaping …) follow.
// Where u is the feature itself, the head is one linear layer, however it is written.
//
// W is read off by autograd, C rows at once. Cost: one forward and one backward of C rows.
// Tested by tests/methods/scores/feature_margin_test.cc.
#pragma once

#include <cstdint>

#include <torch/types.h>

#include "fcp/methods/scores/labels.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

struct AffineTail {
  Graph front;           // makes u from the feature; without nodes where u is the feature
  torch::Tensor weight;  // W [C, D], float32 on the CPU; D numbers of u
  torch::Tensor bias;    // b [C]

  bool whole() const { return front.nodes.empty(); }
};

// `features` [N, …]: example rows, which say the shapes; N > 0.
AffineTail affine_tail(const LogitHead& head, const torch::Tensor& features);

}  // namespace fcp
