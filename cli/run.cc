// fcp run: a network's answers, its features (--to) or what its head says of features (--from).
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/npy.h"
#include "fcp/network/cut.h"
#include "fcp/network/network.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/pipeline/answers.h"
#include "fcp/scores/head_outputs.h"

#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/verbs.h"

namespace fcp {
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

// The part of the network between --from and --to.
Graph part_of(const Graph& graph, const RunVerbOptions& options) {
  std::vector<TensorInfo> inputs = graph.inputs;
  std::vector<TensorInfo> outputs = graph.outputs;
  const auto tensor = [&](const std::string& where) {
    TensorInfo info;
    info.name = resolve_cut(graph, where);
    info.known_rank = false;
    return info;
  };
  if (!options.from.empty()) inputs = {tensor(options.from)};
  if (!options.to.empty()) outputs = {tensor(options.to)};
  return extract(graph, inputs, outputs);
}

// Writes the rows of one output to an .npy or a CSV file.
class OutputWriter {
 public:
  OutputWriter(std::string name, std::string file)
      : name_(std::move(name)), file_(std::move(file)) {}

  void append(const torch::Tensor& output) {
    const torch::Tensor rows = output.to(torch::kCPU, torch::kFloat).contiguous();
    if (rows.dim() == 0) fail("output '", name_, "' has no rows");
    const int64_t row_size = rows.numel() / std::max<int64_t>(1, rows.size(0));
    if (!npy_ && !csv_) open(rows.sizes().vec(), row_size);
    const float* data = rows.data_ptr<float>();
    if (npy_) {
      npy_->append(std::span<const float>(data, static_cast<size_t>(rows.numel())));
      return;
    }
    for (int64_t i = 0; i < rows.size(0); ++i) {
      csv_->row(std::span<const float>(data + i * row_size, static_cast<size_t>(row_size)));
    }
  }

  void close() {
    if (npy_) npy_->close();
    if (csv_) csv_->close();
  }

 private:
  void open(const std::vector<int64_t>& shape, int64_t row_size) {
    if (file_.ends_with(".npy")) {
      npy_ =
          std::make_unique<NpyWriter>(file_, std::vector<int64_t>(shape.begin() + 1, shape.end()));
      return;
    }
    std::vector<std::string> columns;
    for (int64_t i = 0; i < row_size; ++i) {
      columns.push_back(row_size == 1 ? name_ : concat(name_, "_", i));
    }
    csv_ = std::make_unique<CsvWriter>(file_, columns);
  }

  std::string name_;
  std::string file_;
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<CsvWriter> csv_;
};

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
    sources.push_back(open_data(data, options.from.empty() ? &graph : nullptr));
  }
  return sources;
}

void run_network(const RunVerbOptions& options) {
  Context context = start(options.common);
  context.batch = options.data.batch;
  torch::NoGradGuard no_grad;
  const Graph graph = read_onnx(options.model);
  std::unique_ptr<Network> network;
  try {
    network = std::make_unique<Network>(
        part_of(graph, options),
        NetworkOptions{.fold_batch_norm = !options.keep_batch_norm, .device = context.device});
  } catch (const Error& error) {
    fail(options.model, ": ", error.what());
  }
  const auto sources = open_inputs(options, graph, *network);
  const auto files = files_by_name(options.outputs, network->outputs(), "--out");
  std::vector<std::unique_ptr<OutputWriter>> writers;
  for (const TensorInfo& output : network->outputs()) {
    const auto file = files.find(output.name);
    writers.push_back(
        file == files.end() ? nullptr : std::make_unique<OutputWriter>(output.name, file->second));
  }

  size_t batch = context.batch_for(*sources[0]);
  const size_t total = sources[0]->size().value_or(0);
  Stage stage(context, "run", total);
  std::vector<Rows> rows(sources.size());
  size_t done = 0;
  for (;;) {
    check_interrupted();
    size_t ended = 0;
    Tensors inputs;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!sources[i]->next(batch, rows[i])) ++ended;
      inputs.push_back(view(rows[i].x));
    }
    if (ended == sources.size()) break;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (ended > 0 || rows[i].x.rows() != rows[0].x.rows()) {
        fail("the inputs differ in their number of rows");
      }
    }
    const Tensors outputs = network->run_rows(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!writers[i]) continue;
      check_answers(outputs[i], *sources[0], rows[0].first_row);
      writers[i]->append(outputs[i]);
    }
    done += rows[0].x.rows();
    stage.advance(rows[0].x.rows());
  }
  if (done == 0) fail(options.inputs[0], ": has no rows");
  for (const auto& writer : writers) {
    if (writer) writer->close();
  }
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
  add_common(*verb, options->common);
  verb->callback([options] { run_network(*options); });
}

}  // namespace fcp
