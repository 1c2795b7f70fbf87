// fcp inspect: the layers of a network, their shapes and costs, and where it can be cut.
#include "fcp/network/inspect.h"

#include <iostream>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/printable.h"
#include "fcp/base/text_table.h"
#include "fcp/network/onnx_reader.h"

#include "cli/common.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct InspectOptions {
  CommonOptions common;
  std::string model;
  std::vector<std::string> shapes;
};

using Json = nlohmann::ordered_json;

// "image=1,3,224,224" → name and shape.
std::pair<std::string, std::vector<int64_t>> parse_shape(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) {
    throw UsageError(concat("--shape ", text, ": expected name=1,3,224,224"));
  }
  std::vector<int64_t> shape;
  std::istringstream numbers(text.substr(equals + 1));
  for (std::string number; std::getline(numbers, number, ',');) {
    char* end = nullptr;
    const long value = std::strtol(number.c_str(), &end, 10);
    if (number.empty() || *end != '\0' || value < 1) {
      throw UsageError(concat("--shape ", text, ": '", number, "' is not a positive number"));
    }
    shape.push_back(value);
  }
  return {text.substr(0, equals), shape};
}

std::string dimensions(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) {
    text += (text.empty() ? "" : "×") + (size == kDynamic ? "?" : std::to_string(size));
  }
  return text.empty() ? "scalar" : text;
}

Json tensor_json(const TensorInfo& info) {
  Json shape = Json::array();
  for (const int64_t size : info.shape) shape.push_back(size == kDynamic ? Json() : Json(size));
  return {{"name", info.name}, {"shape", shape}};
}

Json report_json(const NetworkReport& report) {
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
                             {"shape", node.shape},
                             {"parameters", node.parameters},
                             {"flops", node.flops},
                             {"forward", true},
                             {"gradient", node.gradient},
                             {"bounds", node.bounds}});
  }
  for (const CutReport& cut : report.cuts) {
    json["cuts"].push_back({{"tensor", cut.tensor},
                            {"shape", cut.shape},
                            {"size", cut.size},
                            {"head_layers", cut.head_layers},
                            {"bounds", cut.bounds}});
  }
  return json;
}

void print_report(const std::string& file, const NetworkReport& report) {
  std::cout << file << ": operator set " << report.opset << ", " << report.layers << " layers, "
            << short_count(static_cast<double>(report.parameters)) << " parameters, "
            << short_count(report.flops) << " FLOPs a row\n";
  for (const TensorInfo& info : report.inputs) {
    std::cout << "  input   " << printable(info.name) << "  " << dimensions(info.shape) << '\n';
  }
  for (const TensorInfo& info : report.outputs) {
    std::cout << "  output  " << printable(info.name) << "  " << dimensions(info.shape) << '\n';
  }
  Table nodes({"node", "op", "output", "shape", "parameters", "FLOPs", "gradient", "bounds"});
  for (const NodeReport& node : report.nodes) {
    nodes.add_row({node.name, node.op, node.output == node.name ? "" : node.output,
                   dimensions(node.shape), short_count(static_cast<double>(node.parameters)),
                   short_count(node.flops), node.gradient ? "yes" : "no", node.bounds});
  }
  std::cout << '\n'
            << nodes << "\nValid cuts (--cut takes the tensor, or -k for the last k layers):\n";
  Table cuts({"tensor", "shape", "feature size", "layers in the head", "bounds of the head"});
  for (const CutReport& cut : report.cuts) {
    cuts.add_row({cut.tensor, dimensions(cut.shape), std::to_string(cut.size),
                  std::to_string(cut.head_layers), cut.bounds});
  }
  std::cout << cuts;
}

void run_inspect(const InspectOptions& options) {
  start(options.common);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& text : options.shapes) shapes.insert(parse_shape(text));
  NetworkReport report;
  const Graph graph = read_onnx(options.model);
  try {
    report = inspect(graph, shapes);
  } catch (const Error& error) {
    fail(options.model, ": ", error.what());
  }
  if (options.common.json) {
    std::cout << report_json(report).dump(2) << '\n';
  } else {
    print_report(options.model, report);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* verb = app.add_subcommand("inspect", "Show a network's layers and where it can be cut");
  verb->footer(
      "Example:\n  fcp inspect model.onnx\n  fcp inspect model.onnx --shape image=1,3,224,224");
  verb->add_option("model", options->model, "ONNX file")->required();
  verb->add_option("--shape", options->shapes, "Shape of an input whose file leaves it open")
      ->allow_extra_args(false);
  add_common(*verb, options->common);
  verb->callback([options] { run_inspect(*options); });
}

}  // namespace fcp
