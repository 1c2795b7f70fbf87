// What there is to know about a network before working with it: its nodes with shapes, parameters
// and arithmetic, and the tensors at which it can be cut. Shapes are found by running the network
// once, on zeros. `fcp inspect` prints this.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fcp/network/graph.h"

namespace fcp {

struct NodeReport {
  std::string name;  // of the node, or of its first output where the file gives none
  std::string op;
  std::string output;  // tensor
  std::vector<int64_t> shape;
  int64_t parameters = 0;
  double flops = 0;
  bool gradient = false;
  std::string bounds;  // "linear", "interval" (to linear bounds two constants) or "none"
};

struct CutReport {
  std::string tensor;
  std::vector<int64_t> shape;  // with the batch
  int64_t size = 0;            // numbers in one row's feature
  size_t head_layers = 0;
  std::string bounds;  // the weakest of the head's nodes; "ibp" where linear bounds refuse the head
};

struct NetworkReport {
  int64_t opset = 0;
  size_t layers = 0;
  int64_t parameters = 0;
  double flops = 0;
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  std::vector<NodeReport> nodes;  // those that depend on an input; constants are folded away
  std::vector<CutReport> cuts;
};

// `shapes` overrides the shape of inputs by name. A dynamic first dimension is taken as 1; any
// other dynamic dimension must be given, and an Error says which. Where nodes are not supported,
// one Error lists them all.
NetworkReport inspect(const Graph& graph,
                      const std::map<std::string, std::vector<int64_t>>& shapes = {});

}  // namespace fcp
