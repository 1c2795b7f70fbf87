// The populations of the self-test. A network's quality must not matter for coverage, so there are
// three: `even`, where the network knows the answers up to noise that it does not see grow;
// `heavy`, where some answers are far out and a third of the labels are wrong; and `blind`, where
// the network has nothing to do with the answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

struct SelftestWorld {
  std::string name;
  Graph mean, quantiles, logits;  // networks: one output, two quantiles, six classes
  Graph heads;                    // `mean` with heads on its features, of random weights
  Graph pair;                     // two outputs, the first that of `mean`, with such heads
  torch::Tensor x;                // [N, 4]
  torch::Tensor truth;            // [N, 1]
  torch::Tensor pairs;            // [N, 2]: the truth, and another one with the same noise
  torch::Tensor labels;           // [N, 1]
  std::vector<int64_t> groups;    // [N], of three
  std::vector<double> weights;    // [N], a likelihood ratio between 0.2 and 5
};

std::vector<SelftestWorld> selftest_worlds(size_t rows, uint64_t seed);

}  // namespace fcp
