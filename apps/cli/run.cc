// fcp run: a network's answers, its features (--to) or what its head says of features (--from).
#include <iostream>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/batch_axis.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/input_numbers.h"
#include "fcp/predictor/network_inputs.h"
#include "fcp/predictor/run_network.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"

namespace fcp::cli {
namespace {

struct RunVerbOptions {
  CommonOptions common;
  DataFlags data;
  std::string model;
  std::vector<std::string> inputs;   // file, or name=file
  std::vector<std::string> outputs;  // likewise
  std::string from;
  std::string to;
  bool keep_batch_norm = false;
};

// The name of the only tensor besides those of heads on features; empty where there are several.
std::string only_name(const std::vector<TensorInfo>& tensors) {
  std::string name;
  for (const TensorInfo& tensor : tensors) {
    if (tensors.size() > 1 && is_head_output(tensor.name)) continue;
    if (!name.empty()) return "";
    name = tensor.name;
  }
  return name;
}

// "name=file" where `names` has that name; otherwise the whole text is a file for the only name.
std::map<std::string, std::string> files_by_name(const std::vector<std::string>& texts,
                                                 const std::vector<TensorInfo>& tensors,
                                                 const char* option) {
  std::map<std::string, std::string> files;
  for (const std::string& text : texts) {
    std::string name = only_name(tensors);
    std::string file = text;
    for (const TensorInfo& tensor : tensors) {
      if (text.starts_with(tensor.name + "=")) {
        name = tensor.name;
        file = text.substr(tensor.name.size() + 1);
      }
    }
    std::string known;
    for (const TensorInfo& tensor : tensors) known += (known.empty() ? "" : ", ") + tensor.name;
    if (name.empty())
      throw UsageError(concat(option, " ", text, ": expected name=file with a name of ", known));
    if (!files.emplace(name, file).second)
      throw UsageError(concat(option, ": '", name, "' is given twice"));
  }
  return files;
}

std::vector<std::unique_ptr<RowSource>> open_inputs(const RunVerbOptions& options,
                                                    const Graph& graph, const Network& network) {
  const auto files = files_by_name(options.inputs, network.inputs(), "--data");
  std::vector<std::unique_ptr<RowSource>> sources;
  for (const TensorInfo& input : network.inputs()) {
    const auto file = files.find(input.name);
    if (file == files.end())
      throw UsageError(concat("--data: nothing is given for input '", input.name, "'"));
    DataOptions data = data_options(options.data);
    data.data = file->second;
    // The columns that training knew are those of the network's input, not of its features.
    Graph alone;
    alone.inputs = {input};
    if (options.from.empty()) alone.metadata = graph.metadata;
    Graph whole = network.graph();
    whole.metadata = alone.metadata;
    data.missing = std::make_shared<const MissingNumbers>(whole, input.name);
    sources.push_back(open_data(data, &alone));
  }
  return sources;
}

void run_verb(const RunVerbOptions& options) {
  Context context = start(options.common);
  context.batch = options.data.batch;
  torch::NoGradGuard no_grad;
  Graph graph = with_rows_first(read_onnx(options.model));
  std::unique_ptr<Network> network;
  try {
    name_text_columns(graph);
    network = std::make_unique<Network>(
        part_between(graph, options.from, options.to),
        NetworkOptions{.fold_batch_norm = !options.keep_batch_norm, .device = context.device});
  } catch (const Error& error) {
    fail(options.model, ": ", error.what());
  }
  const auto sources = open_inputs(options, graph, *network);
  const auto files = files_by_name(options.outputs, network->outputs(), "--out");
  const size_t done = run_network(*network, sources, files, context);
  if (done == 0) fail(options.inputs[0], ": has no rows");
  if (options.common.json) {
    nlohmann::ordered_json json = {{"rows", done}, {"outputs", files}};
    std::cout << json.dump(2) << '\n';
  } else {
    say(options.common, concat("ran ", done, " rows"));
  }
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunVerbOptions>();
  CLI::App* verb = app.add_subcommand("run", "Run a network, its backbone or its head on rows");
  verb->footer(
      "Examples:\n"
      "  fcp run model.onnx --data x.npy --out y.npy\n"
      "  fcp run model.onnx --data x.csv --to hidden2 --out features.npy\n"
      "  fcp run model.onnx --from hidden2 --data features.npy --out y.csv\n"
      "  fcp run two.onnx --data left=a.npy --data right=b.npy --out sum=s.npy --out "
      "difference=d.npy");
  verb->add_option("model", options->model, "ONNX file")->required();
  verb->add_option("--data", options->inputs,
                   "Rows: .npy, .npz:entry or CSV; name=file for each of several inputs")
      ->allow_extra_args(false)
      ->required();
  verb->add_option("--out", options->outputs,
                   "Result: .npy or .csv; name=file for each wanted of several outputs")
      ->allow_extra_args(false)
      ->required();
  verb->add_option("--to", options->to, "Stop at this tensor, node or layer (see `fcp inspect`)");
  verb->add_option("--from", options->from,
                   "Start at this tensor, node or layer, with its value as data");
  verb->add_flag("--keep-batch-norm", options->keep_batch_norm,
                 "Do not fold BatchNormalization into the layer before it");
  add_data(*verb, options->data, /*needs_target=*/false);
  add_common(*verb, options->common, kTakesJson | kTakesThreads | kTakesDevice);
  verb->callback([options] { run_verb(*options); });
}

}  // namespace fcp::cli
