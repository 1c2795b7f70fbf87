// What there is to know about a network before working with it: its nodes with shapes, parameters
// and arithmetic, and the tensors at which it can be cut. Shapes are found by running the network
// on one row: zeros, or where the network does not run on zeros, other small numbers. `fcp inspect`
// prints this.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fcp/nn/graph/graph.h"

namespace fcp {

struct NodeReport {
  std::string name;  // of the node, or of its first output where the file gives none
  std::string op;
  std::string output;                         // tensor
  std::optional<std::vector<int64_t>> shape;  // none: the example row did not get that far
  int64_t parameters = 0;
  double flops = 0;
  bool gradient = false;
  std::string bounds;  // "linear", "interval" (to linear bounds two constants) or "none"
};

struct CutReport {
  std::string tensor;
  std::optional<std::vector<int64_t>> shape;  // with the batch; none: not known
  int64_t size = 0;                           // numbers in one row's feature
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
  std::vector<std::string>
      notes;  // what was assumed of the inputs, and where the example row ended
};

// `shapes` overrides the shape of inputs by name. A dynamic first dimension is taken as 1; for
// others the first of a few sizes is taken with which the network runs, the same for all. Where it
// runs with none, the nodes that were not reached have no shapes, and a note says why. Where nodes
// are not supported, one Error lists them all.
NetworkReport inspect(const Graph& graph,
                      const std::map<std::string, std::vector<int64_t>>& shapes = {});

// What `inspect` finds, as JSON and as text.

nlohmann::ordered_json network_json(const NetworkReport& report);
std::string network_text(const NetworkReport& report);  // a line of facts, then the tables

}  // namespace fcp
