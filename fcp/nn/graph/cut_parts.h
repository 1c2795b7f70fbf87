// What cut.cc, which needs no libtorch, shares with cut_shapes.cc, which runs networks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

// What computing `outputs` takes when the tensors `stops` are given.
struct Needed {
  std::vector<bool> nodes;
  std::set<std::string> tensors;  // inputs, initializers and everything in between
};
Needed needed_for(const Graph& graph, const std::vector<std::string>& outputs,
                  const std::set<std::string>& stops);

std::vector<std::string> names_of(const std::vector<TensorInfo>& infos);

// A tensor of the graph; of one between the nodes the shape is not known.
TensorInfo info_of(const Graph& graph, const std::string& name);

// Whether every dimension of every input but the first is known, so that running the network once
// tells all shapes.
bool knows_shapes(const Graph& graph);

// The nodes that tell the head shapes from before the cut.
std::vector<size_t> early_shapes(const Graph& graph, const std::string& feature);

}  // namespace fcp
