// fcp inspect: the layers of a network, their shapes and costs, and where it can be cut.
#include "fcp/nn/graph/inspect.h"

#include <iostream>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_reader.h"

#include "apps/cli/common.h"

namespace fcp::cli {
namespace {

struct InspectOptions {
  CommonOptions common;
  std::string model;
  std::vector<std::string> shapes;
};

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
    std::cout << network_json(report).dump(2) << '\n';
  } else {
    std::cout << options.model << ": " << network_text(report);
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
  add_common(*verb, options->common, kTakesJson | kTakesThreads);
  verb->callback([options] { run_inspect(*options); });
}

}  // namespace fcp::cli
