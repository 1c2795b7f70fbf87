#include "fcp/nn/graph/inspect.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/text.h"
#include "fcp/base/text_table.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/half.h"
#include "fcp/nn/graph/rows_first.h"
#include "fcp/nn/graph/simplify.h"
#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

// The inputs that the example row leaves a choice for.
bool is_open(const TensorInfo& info, const Shapes& shapes) {
  if (shapes.contains(info.name) || info.shape.empty()) return false;
  return std::find(info.shape.begin() + 1, info.shape.end(), kDynamic) != info.shape.end();
}

// Sizes of open dimensions to try: those of the weights that meet an input, then usual ones.
std::vector<int64_t> sizes_to_try(const Graph& graph, const Shapes& shapes) {
  std::vector<int64_t> sizes;
  const auto add = [&](int64_t size) {
    constexpr int64_t kMost = 4096;
    const bool fresh = std::find(sizes.begin(), sizes.end(), size) == sizes.end();
    if (fresh && size > 1 && size <= kMost) sizes.push_back(size);
  };
  const auto open = [&](const std::string& name) {
    return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const TensorInfo& info) {
      return info.name == name && is_open(info, shapes);
    });
  };
  if (std::none_of(graph.inputs.begin(), graph.inputs.end(),
                   [&](const TensorInfo& info) { return is_open(info, shapes); })) {
    return {1};
  }
  for (const Node& node : graph.nodes) {
    if (std::none_of(node.inputs.begin(), node.inputs.end(), open)) continue;
    for (const std::string& name : node.inputs) {
      const auto weight = graph.initializers.find(name);
      if (weight == graph.initializers.end() || !weight->second.is_floating_point()) continue;
      for (const int64_t size : weight->second.shape()) add(size);
    }
  }
  for (const int64_t size : {16, 32, 64, 224, 256, 512, 8, 4, 2}) add(size);
  sizes.push_back(1);
  return sizes;
}

// Empty: the shape of an input is not known.
Tensors example_row(const Graph& graph, const Shapes& shapes, int64_t open, int64_t whole) {
  Tensors inputs;
  for (const TensorInfo& info : graph.inputs) {
    const auto given = shapes.find(info.name);
    if (given == shapes.end() && !info.known_rank) return {};
    std::vector<int64_t> shape = given == shapes.end() ? info.shape : given->second;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == kDynamic) shape[i] = i == 0 ? 1 : open;
    }
    inputs.push_back(declared_zeros(shape, info.type, info.name));
    if (!is_floating(info.type)) inputs.back().fill_(whole);
  }
  return inputs;
}

int64_t parameters_of(const Step& step, const Tensors& constants) {
  int64_t count = 0;
  for (const int slot : step.inputs) {
    if (slot < 0) continue;
    const torch::Tensor& tensor = constants[static_cast<size_t>(slot)];
    if (tensor.defined() && tensor.is_floating_point()) count += tensor.numel();
  }
  return count;
}

// The bounds of heads that have intervals. Where rows leave the first axis, linear bounds are those
// of the head with its rows first; of a head without that form, and of all that contain it, ibp
// remains.
void see_moved_rows(const Graph& graph, std::vector<CutReport>& cuts) {
  bool known = true;
  for (size_t i = cuts.size(); i-- > 0;) {
    CutReport& report = cuts[i];
    if (report.bounds != support_name(BoundSupport::kInterval)) continue;
    if (!known) {
      report.bounds = "ibp";
      continue;
    }
    if (!report.shape) {
      report.bounds = "ibp";
      continue;
    }
    std::optional<Network> head;
    try {
      head.emplace(cut(graph, report.tensor).head);
    } catch (const Error&) {  // shapes from before it that the head cannot know
      cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (!moves_rows(*head)) continue;
    try {
      const TensorInfo& feature = head->inputs()[0];
      const torch::Tensor row = declared_zeros(*report.shape, feature.type, feature.name);
      BoundSupport weakest = BoundSupport::kLinear;
      for (const BoundSupport support : bound_support(Network(rows_first(*head, row)))) {
        weakest = std::min(weakest, support);
      }
      report.bounds = support_name(weakest);
    } catch (const Error&) {
      known = false;
      report.bounds = "ibp";
    }
  }
}

// The head of a cut is what follows it, so one walk from the end counts layers and finds the
// weakest bounds for all cuts.
std::vector<CutReport> report_cuts(const Graph& graph, const Network& network,
                                   const std::vector<BoundSupport>& support, const Shapes& shapes) {
  const std::vector<bool> layers = layer_marks(graph);
  const size_t count = network.steps().size();
  std::vector<size_t> layers_from(count + 1, 0);  // of the steps from here on
  std::vector<BoundSupport> weakest_from(count + 1, BoundSupport::kLinear);
  std::map<std::string, size_t> made_by;
  for (size_t i = count; i-- > 0;) {
    layers_from[i] = layers_from[i + 1] + (layers[i] ? 1 : 0);
    weakest_from[i] = std::min(weakest_from[i + 1], support[i]);
    for (const std::string& output : network.steps()[i].node.outputs) made_by[output] = i;
  }
  std::vector<CutReport> cuts;
  for (const std::string& tensor : feature_cuts(graph)) {
    const auto maker = made_by.find(tensor);
    const size_t head = maker == made_by.end() ? 0 : maker->second + 1;
    CutReport report;
    report.tensor = tensor;
    const auto shape = shapes.find(tensor);
    if (shape != shapes.end()) report.shape = shape->second;
    if (report.shape && report.shape->size() < 2) continue;  // no tensor of features
    report.size = report.shape ? 1 : 0;
    for (size_t i = 1; report.shape && i < report.shape->size(); ++i) {
      report.size *= (*report.shape)[i];
    }
    report.head_layers = layers_from[head];
    report.bounds = support_name(weakest_from[head]);
    cuts.push_back(std::move(report));
  }
  see_moved_rows(graph, cuts);
  return cuts;
}

// What one row shows: the arithmetic of the nodes that it reached, and the shapes of tensors.
struct Walked {
  std::vector<double> flops;
  Shapes shapes;
};

// Runs one row; what was reached is in `walked` even where an Error ends it.
void run_row(const Network& network, const Tensors& inputs, Walked& walked) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    walked.shapes[network.inputs()[i].name] = inputs[i].sizes().vec();
  }
  network.run(inputs, [&](const Step& step, const Tensors& arguments, const Tensors& results) {
    for (size_t i = 0; i < step.node.outputs.size() && i < results.size(); ++i) {
      if (results[i].defined()) walked.shapes[step.node.outputs[i]] = results[i].sizes().vec();
    }
    walked.flops.push_back(step.op->flops(arguments, results));
  });
}

std::string row_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : "×") + std::to_string(size);
  return text;
}

// The example row that gets furthest.
Walked walk(const Network& network, const Graph& graph, const Shapes& shapes,
            std::vector<std::string>& notes) {
  const bool whole = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                 [](const auto& info) { return is_integer(info.type); });
  Walked best;
  std::string complaint;
  bool first = true;
  for (const int64_t open : sizes_to_try(graph, shapes)) {
    // Tokens that end a sentence, which some networks look for, are 1 or 2 in common vocabularies.
    for (const int64_t value : whole ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{0}) {
      const Tensors inputs = example_row(graph, shapes, open, value);
      if (inputs.empty()) {
        notes.push_back(
            "the file does not say the shape of every input: shapes and costs are not "
            "known; give it, as in --shape x=1,3,224,224");
        return {};
      }
      Walked walked;
      complaint.clear();
      try {
        run_row(network, inputs, walked);
      } catch (const Error& error) {
        complaint = error.what();
      }
      if (first || complaint.empty() || walked.flops.size() > best.flops.size()) best = walked;
      first = false;
      if (!complaint.empty()) continue;
      for (const TensorInfo& info : graph.inputs) {
        if (!is_open(info, shapes)) continue;
        notes.push_back(concat("input '", info.name, "' leaves dimensions open: shapes and costs ",
                               "are those of ", row_text(best.shapes[info.name])));
      }
      return best;
    }
  }
  const bool chosen = whole || std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                           [&](const auto& info) { return is_open(info, shapes); });
  if (!chosen) fail(complaint);
  notes.push_back(concat("the network does not run on the example row, so that some shapes and ",
                         "costs are not known; --shape may help (", complaint, ")"));
  return best;
}

}  // namespace

NetworkReport inspect(const Graph& graph,
                      const std::map<std::string, std::vector<int64_t>>& shapes) {
  torch::NoGradGuard no_grad;
  for (const auto& entry : shapes) {
    const std::string& name = entry.first;  // clang 14 lets no lambda capture a structured binding
    const bool known = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                   [&](const TensorInfo& info) { return info.name == name; });
    if (!known) fail("the network has no input '", name, "'");
  }
  Graph folded = graph;
  widen_half(folded);
  drop_unneeded(folded);
  check_supported(folded);
  fold_constants(folded);
  drop_unneeded(folded);

  NetworkReport report;
  report.opset = graph.opset;
  report.layers = count_layers(folded);
  report.inputs = graph.inputs;
  report.outputs = graph.outputs;
  const Network network(folded, {.fold_constants = false, .fold_batch_norm = false});
  const std::vector<BoundSupport> support = bound_support(network);
  for (const Step& step : network.steps()) {
    NodeReport node;
    node.op = step.node.op;
    node.output = step.node.outputs.empty() ? "" : step.node.outputs[0];
    node.name = step.node.name.empty() ? node.output : step.node.name;
    node.parameters = parameters_of(step, network.constants());
    node.gradient = step.op->differentiable();
    node.bounds = support_name(support[report.nodes.size()]);
    report.nodes.push_back(std::move(node));
  }
  const Walked walked = walk(network, folded, shapes, report.notes);
  for (size_t i = 0; i < walked.flops.size(); ++i) {
    report.nodes[i].flops = walked.flops[i];
    const auto shape = walked.shapes.find(report.nodes[i].output);
    if (shape != walked.shapes.end()) report.nodes[i].shape = shape->second;
    report.flops += walked.flops[i];
  }
  for (const auto& [name, tensor] : folded.initializers) {
    if (tensor.is_floating_point()) report.parameters += tensor.numel();
  }
  report.cuts = report_cuts(folded, network, support, walked.shapes);
  return report;
}

namespace {

using Json = nlohmann::ordered_json;

// "1.9k", "25.6M", "4.1G".
std::string short_count(double value) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f%s" : "%.1f%s", value,
                kUnits[unit]);
  return text;
}

std::string dimensions(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) {
    text += (text.empty() ? "" : "×") + (size == kDynamic ? "?" : std::to_string(size));
  }
  return text.empty() ? "scalar" : text;
}

std::string dimensions(const std::optional<std::vector<int64_t>>& shape) {
  return shape ? dimensions(*shape) : "?";
}

Json shape_json(const std::optional<std::vector<int64_t>>& shape) {
  return shape ? Json(*shape) : Json();
}

Json tensor_json(const TensorInfo& info) {
  Json shape = Json::array();
  for (const int64_t size : info.shape) shape.push_back(size == kDynamic ? Json() : Json(size));
  return {{"name", info.name}, {"shape", shape}};
}

}  // namespace

Json network_json(const NetworkReport& report) {
  Json json = {{"opset", report.opset},           {"layers", report.layers},
               {"parameters", report.parameters}, {"flops", report.flops},
               {"inputs", Json::array()},         {"outputs", Json::array()},
               {"nodes", Json::array()},          {"cuts", Json::array()}};
  for (const TensorInfo& info : report.inputs) json["inputs"].push_back(tensor_json(info));
  for (const TensorInfo& info : report.outputs) json["outputs"].push_back(tensor_json(info));
  for (const NodeReport& node : report.nodes) {
    json["nodes"].push_back({{"name", node.name},
                             {"op", node.op},
                             {"output", node.output},
                             {"shape", shape_json(node.shape)},
                             {"parameters", node.parameters},
                             {"flops", node.flops},
                             {"forward", true},
                             {"gradient", node.gradient},
                             {"bounds", node.bounds}});
  }
  for (const CutReport& cut : report.cuts) {
    json["cuts"].push_back({{"tensor", cut.tensor},
                            {"shape", shape_json(cut.shape)},
                            {"size", cut.size},
                            {"head_layers", cut.head_layers},
                            {"bounds", cut.bounds}});
  }
  json["notes"] = report.notes;
  return json;
}

std::string network_text(const NetworkReport& report) {
  std::ostringstream text;
  text << "operator set " << report.opset << ", " << report.layers << " layers, "
       << short_count(static_cast<double>(report.parameters)) << " parameters, "
       << short_count(report.flops) << " FLOPs per row\n";
  for (const TensorInfo& info : report.inputs) {
    text << "  input   " << printable(info.name) << "  " << dimensions(info.shape) << '\n';
  }
  for (const TensorInfo& info : report.outputs) {
    text << "  output  " << printable(info.name) << "  " << dimensions(info.shape) << '\n';
  }
  for (const std::string& note : report.notes) text << "  " << printable(note) << '\n';
  Table nodes({"node", "op", "output", "shape", "parameters", "FLOPs", "gradient", "bounds"});
  for (const NodeReport& node : report.nodes) {
    nodes.add_row({node.name, node.op, node.output == node.name ? "" : node.output,
                   dimensions(node.shape), short_count(static_cast<double>(node.parameters)),
                   short_count(node.flops), node.gradient ? "yes" : "no", node.bounds});
  }
  text << '\n' << nodes << "\nValid cuts (--cut takes the tensor, or -k for the last k layers):\n";
  Table cuts({"tensor", "shape", "feature size", "layers in the head", "bounds of the head"});
  for (const CutReport& cut : report.cuts) {
    cuts.add_row({cut.tensor, dimensions(cut.shape), cut.shape ? std::to_string(cut.size) : "?",
                  std::to_string(cut.head_layers), cut.bounds});
  }
  text << cuts;
  return text.str();
}

}  // namespace fcp
