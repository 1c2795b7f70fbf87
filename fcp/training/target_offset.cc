#include "fcp/training/target_offset.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "fcp/data/encoding_text.h"
#include "fcp/training/graph_parts.h"

namespace fcp {
namespace {

constexpr double kCoarse = 1e-3;  // of the spread

double offset_of(const Array& y, size_t target) {
  double mean = 0, squares = 0, count = 0;  // Welford
  for (size_t i = target; i < y.exact.size(); i += y.row_size()) {
    const double off = y.exact[i] - mean;
    mean += off / ++count;
    squares += off * (y.exact[i] - mean);
  }
  const double deviation = std::sqrt(squares / count);
  const double unit = std::abs(mean) * std::numeric_limits<float>::epsilon();
  if (!std::isfinite(deviation) || deviation == 0 || unit <= kCoarse * deviation) return 0;
  const double step = std::exp2(std::floor(std::log2(deviation)));
  return std::round(mean / step) * step;
}

// The tensor has another name wherever it is written or read.
void rename_tensor(Graph& graph, const std::string& from, const std::string& to) {
  for (Node& node : graph.nodes) {
    for (std::string& name : node.inputs) name = name == from ? to : name;
    for (std::string& name : node.outputs) name = name == from ? to : name;
  }
}

}  // namespace

std::vector<double> target_offsets(const Array& y) {
  std::vector<double> offsets;
  bool any = false;
  for (size_t k = 0; k < y.row_size() && !y.exact.empty(); ++k) {
    offsets.push_back(offset_of(y, k));
    any = any || offsets.back() != 0;
  }
  return any ? offsets : std::vector<double>();
}

Array less_offsets(const Array& y, const std::vector<double>& offsets) {
  Array rest{y.shape, {}};
  rest.values.reserve(y.exact.size());
  for (size_t i = 0; i < y.exact.size(); ++i) {
    rest.values.push_back(static_cast<float>(y.exact[i] - offsets[i % offsets.size()]));
  }
  return rest;
}

void add_offsets(Graph& graph, const std::vector<double>& offsets) {
  const std::set<std::string> answers = {"prediction", "low", "high", "fcp.cross_low",
                                         "fcp.cross_high"};
  graph.initializers["target_offset"] = torch::tensor(offsets, torch::kDouble);
  for (TensorInfo& output : graph.outputs) {
    if (!answers.contains(output.name)) continue;
    const std::string beside = output.name + "_beside_offset", wide = output.name + "_wide";
    rename_tensor(graph, output.name, beside);
    append_node(graph, "Cast", {beside}, wide, {{"to", int64_t{11}}});  // double
    append_node(graph, "Add", {wide, "target_offset"}, output.name);
    output.type = ElementType::kDouble;
  }
  graph.metadata[kTargetOffsetKey] = nlohmann::json(offsets).dump();
  sort_and_check(graph);
}

}  // namespace fcp
