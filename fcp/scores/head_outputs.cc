#include "fcp/scores/head_outputs.h"

#include <algorithm>
#include <set>

#include "fcp/network/cut.h"
#include "fcp/scores/cross_labels.h"

namespace fcp {
namespace {

Graph keeping_heads(const Graph& network, const std::set<std::string>& heads) {
  std::vector<TensorInfo> kept;
  for (const TensorInfo& output : network.outputs) {
    if (!is_head_output(output.name) || heads.contains(output.name)) kept.push_back(output);
  }
  if (kept.size() == network.outputs.size()) return network;
  Graph graph = extract(network, network.inputs, kept);
  graph.metadata = network.metadata;
  return graph;
}

}  // namespace

bool is_head_output(const std::string& output) {
  return output == kSpreadOutput || output == kQuantilesOutput || output == kRectifierOutput ||
         output == kCrossLowOutput || output == kCrossHighOutput || output == kCrossMarginsOutput;
}

bool has_output(const Graph& network, const std::string& output) {
  return std::any_of(network.outputs.begin(), network.outputs.end(),
                     [&](const TensorInfo& info) { return info.name == output; });
}

std::string spread_output(const ScoreOptions& options) {
  return options.spread.empty() ? kSpreadOutput : options.spread;
}

std::string quantiles_output(const ScoreOptions& options) {
  return options.quantiles.empty() ? kQuantilesOutput : options.quantiles;
}

Graph graph_for_score(const Graph& network, const ScoreOptions& options) {
  std::set<std::string> read = {options.output, options.normalize, options.low, options.high};
  if (options.name == "spread") read.insert(spread_output(options));
  if (options.name == "quantiles" || options.name == "density") {
    read.insert(quantiles_output(options));
  }
  if (options.name == kCrossScore) read.insert({kCrossLowOutput, kCrossHighOutput});
  if (options.name == kCrossLabelScore) read.insert(kCrossMarginsOutput);
  if (!options.rectifier.empty()) read.insert(options.rectifier);
  return keeping_heads(network, read);
}

Graph without_heads(const Graph& network) { return keeping_heads(network, {}); }

}  // namespace fcp
