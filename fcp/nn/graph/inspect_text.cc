#include "fcp/nn/graph/inspect_text.h"

#include <cstdio>
#include <iterator>
#include <sstream>

#include <nlohmann/json.hpp>

#include "fcp/base/printable.h"
#include "fcp/base/text_table.h"

namespace fcp {
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
