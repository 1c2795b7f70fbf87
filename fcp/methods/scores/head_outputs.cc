#include "fcp/methods/scores/head_outputs.h"

#include <algorithm>
#include <set>

#include "fcp/nn/graph/cut.h"

namespace fcp {
namespace {

// With the head outputs that are read, and of the others all, or those alone that are read.
Graph keeping_outputs(const Graph& network, const std::set<std::string>& read, bool all_others) {
  std::vector<TensorInfo> kept;
  for (const TensorInfo& output : network.outputs) {
    const bool other = !is_head_output(output.name);
    if ((other && all_others) || read.contains(output.name)) kept.push_back(output);
  }
  if (kept.size() == network.outputs.size()) return network;
  Graph graph = extract(network, network.inputs, kept);
  graph.metadata = network.metadata;
  return graph;
}

}  // namespace

bool is_head_output(const std::string& output) {
  return output.starts_with("fcp.");  // reserved
}

bool has_output(const Graph& network, const std::string& output) {
  return std::any_of(network.outputs.begin(), network.outputs.end(),
                     [&](const TensorInfo& info) { return info.name == output; });
}

Graph graph_for_score(const Graph& network, const ScoreOptions& options) {
  const std::string low = options.value(field::low), high = options.value(field::high);
  std::set<std::string> read = {options.output, options.value(field::normalize), low, high};
  for (const std::string& learned : options.learned_outputs()) read.insert(learned);
  if (!options.rectifier.empty()) read.insert(options.rectifier);
  // A name that is not there is complained of where it is looked up.
  const bool named = has_output(network, options.output) ||
                     (has_output(network, low) && has_output(network, high));
  return keeping_outputs(network, read, !named);
}

Graph without_heads(const Graph& network) { return keeping_outputs(network, {}, true); }

}  // namespace fcp
