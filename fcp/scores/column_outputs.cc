#include "fcp/scores/column_outputs.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "fcp/base/error.h"
#include "fcp/scores/head_outputs.h"

namespace fcp {
namespace {

struct OutputColumn {
  TensorInfo output;
  int64_t column = 0;
};

// What "output:column" names; nothing where there is no such output.
std::optional<OutputColumn> parse_column(const Graph& network, const std::string& name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto output =
      std::find_if(network.outputs.begin(), network.outputs.end(),
                   [&](const TensorInfo& info) { return info.name == name.substr(0, colon); });
  OutputColumn found;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, found.column);
  if (output == network.outputs.end() || error != std::errc() || stop != end) return std::nullopt;
  found.output = *output;
  return found;
}

void add_column(Graph& network, const std::string& name, const OutputColumn& wanted) {
  const TensorInfo& output = wanted.output;
  const int64_t count = output.known_rank && output.shape.size() == 2 ? output.shape[1] : kDynamic;
  if ((output.known_rank && output.shape.size() != 2) || wanted.column < 0 ||
      (count != kDynamic && wanted.column >= count)) {
    fail("output '", output.name, "' has no column ", wanted.column, " (from 0)",
         count == kDynamic ? "" : concat("; it has ", count));
  }
  network.initializers[name + "/index"] = torch::tensor({wanted.column}, torch::kLong);
  Node node;
  node.op = "Gather";
  node.name = name + "/Gather";
  node.inputs = {output.name, name + "/index"};
  node.outputs = {name};
  node.attributes["axis"] = int64_t{1};
  network.nodes.push_back(node);
  TensorInfo info{
      .name = name, .type = output.type, .shape = {kDynamic, 1}, .dimension_names = {"", ""}};
  if (output.known_rank) info.shape[0] = output.shape[0];
  if (output.known_rank && !output.dimension_names.empty()) {
    info.dimension_names[0] = output.dimension_names[0];
  }
  network.outputs.push_back(info);
}

}  // namespace

Graph with_column_outputs(const Graph& network, const ScoreOptions& options) {
  Graph changed = network;
  for (const std::string* name :
       {&options.output, &options.normalize, &options.low, &options.high, &options.spread}) {
    if (has_output(changed, *name)) continue;
    const std::optional<OutputColumn> wanted = parse_column(network, *name);
    if (wanted) add_column(changed, *name, *wanted);
  }
  return changed;
}

}  // namespace fcp
