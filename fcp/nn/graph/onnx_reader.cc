#include "fcp/nn/graph/onnx_reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/graph/inline_if.h"
#include "fcp/nn/graph/narrow_tensors.h"
#include "fcp/nn/graph/onnx_nodes.h"
#include "fcp/nn/graph/onnx_tensor.h"
#include "fcp/nn/graph/static_sequences.h"
#include "fcp/nn/ops/op_traits.h"

namespace fcp {
namespace {

bool is_text(const onnx::ValueInfoProto& message) {
  return message.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
}

// The type of text counts as that of the numbers it will become.
TensorInfo read_info(const onnx::ValueInfoProto& message, const std::string& file,
                     bool text_allowed = false) {
  TensorInfo info;
  info.name = message.name();
  if (info.name.empty()) fail(file, ": an input or output has no name");
  if (!message.type().has_tensor_type()) {
    fail(file, ": '", info.name, "' is not a tensor (sequences and maps are not supported)");
  }
  const auto& tensor = message.type().tensor_type();
  std::optional<ElementType> type = element_type(tensor.elem_type());
  if (is_text(message) && text_allowed) type = ElementType::kFloat;
  if (!type) {
    fail(file, ": '", info.name, "' has ",
         is_text(message) ? "strings, expected numbers: encode them before "
                            "the network"
                          : concat("the unsupported element type ", tensor.elem_type()));
  }
  info.type = *type;
  info.known_rank = tensor.has_shape();
  for (const auto& dimension : tensor.shape().dim()) {
    const bool known = dimension.has_dim_value() && dimension.dim_value() > 0;
    info.shape.push_back(known ? dimension.dim_value() : kDynamic);
    info.dimension_names.push_back(known ? "" : dimension.dim_param());
  }
  return info;
}

// Operator sets beside ONNX's own.
std::map<std::string, int64_t> read_domains(const onnx::ModelProto& model) {
  std::map<std::string, int64_t> domains;
  for (const auto& import : model.opset_import()) {
    if (!import.domain().empty() && import.domain() != "ai.onnx") {
      domains[import.domain()] = import.version();
    }
  }
  return domains;
}

constexpr int64_t kUnnamedOpset = 9;

int64_t read_opset(const onnx::ModelProto& model, const std::string& file) {
  for (const auto& import : model.opset_import()) {
    if (!import.domain().empty() && import.domain() != "ai.onnx") continue;
    if (import.version() < kOldestOpset || import.version() > kNewestOpset) {
      fail(file, ": uses ONNX operator set ", import.version(), ", supported are ", kOldestOpset,
           " to ", kNewestOpset);
    }
    return import.version();
  }
  if (model.opset_import_size() == 0) {
    fail(file, ": not an ONNX model (it names no operator set)");
  }
  return kUnnamedOpset;  // no node is of ONNX's own domain
}

// A layer's weight that is not finite makes answers NaN or infinite, far from the cause.
// Other constants may be infinite: masks and limits often are.
void check_weights(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (!has_traits(node, kLayer) && !has_traits(node, kNormalizes)) continue;
    for (const std::string& name : node.inputs) {
      const auto found = graph.initializers.find(name);
      if (found == graph.initializers.end()) continue;
      const std::optional<int64_t> element = found->second.first_not_finite();
      if (!element) continue;
      fail(describe(node), ": its weight '", name, "' is ",
           std::isnan(found->second.number(*element)) ? "NaN" : "infinite", " at element ",
           *element, " (from 0), expected a finite number");
    }
  }
}

bool is_zip_map(const onnx::NodeProto& node) {
  return node.op_type() == "ZipMap" && node.domain() == "ai.onnx.ml" && node.input_size() == 1 &&
         node.output_size() == 1;
}

// ZipMap names the columns of a classifier's [N, C] probabilities by making dictionaries of them.
// Here it is an Identity, and its output the tensor.
Node tensor_instead_of_maps(const onnx::NodeProto& message) {
  Node node;
  node.name = message.name();
  node.op = "Identity";
  node.inputs = {message.input(0)};
  node.outputs = {message.output(0)};
  return node;
}

TensorInfo info_of_zip_map(const onnx::NodeProto& node) {
  int classes = 0;
  for (const auto& attribute : node.attribute()) {
    classes = std::max({classes, attribute.ints_size(), attribute.strings_size()});
  }
  TensorInfo info;
  info.name = node.output(0);
  info.shape = {kDynamic, classes > 0 ? classes : kDynamic};
  info.dimension_names.assign(2, "");
  return info;
}

// The outputs that are tensors of numbers. Others, such as labels that are strings, are left out as
// long as one remains.
std::vector<TensorInfo> read_outputs(const onnx::GraphProto& graph, const std::string& file) {
  std::map<std::string, const onnx::NodeProto*> zip_maps;
  for (const auto& node : graph.node()) {
    if (is_zip_map(node)) zip_maps[node.output(0)] = &node;
  }
  std::vector<TensorInfo> outputs;
  for (const auto& output : graph.output()) {
    const auto zip_map = zip_maps.find(output.name());
    const bool numbers = output.type().has_tensor_type() &&
                         element_type(output.type().tensor_type().elem_type()).has_value();
    if (zip_map != zip_maps.end()) {
      outputs.push_back(info_of_zip_map(*zip_map->second));
    } else if (numbers) {
      outputs.push_back(read_info(output, file));
    }
  }
  if (outputs.empty()) {
    for (const auto& output : graph.output()) read_info(output, file);  // says what is wrong
  }
  return outputs;
}

// The tensors that computing the outputs takes, where some of the file's outputs were left out;
// otherwise nothing, and everything is read.
std::optional<std::set<std::string>> needed_tensors(const onnx::GraphProto& graph,
                                                    const std::vector<TensorInfo>& outputs) {
  if (outputs.size() == static_cast<size_t>(graph.output_size())) return std::nullopt;
  std::map<std::string, const onnx::NodeProto*> made_by;
  for (const auto& node : graph.node()) {
    for (const std::string& output : node.output()) made_by[output] = &node;
  }
  std::set<std::string> needed;
  std::vector<std::string> open;
  for (const TensorInfo& output : outputs) open.push_back(output.name);
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (name.empty() || !needed.insert(name).second) continue;
    const auto maker = made_by.find(name);
    if (maker == made_by.end()) continue;
    for (std::string& read : tensors_read(*maker->second)) open.push_back(std::move(read));
  }
  return needed;
}

// Returns the inputs that are text.
std::vector<std::string> read_tensors(const onnx::GraphProto& message, const std::string& file,
                                      const std::string& folder, Graph& graph) {
  graph.outputs = read_outputs(message, file);
  const auto needed = needed_tensors(message, graph.outputs);
  const auto wanted = [&](const std::string& name) { return !needed || needed->contains(name); };
  for (const auto& tensor : message.initializer()) {
    if (!wanted(tensor.name())) continue;
    const std::string owner = concat(file, ": initializer '", tensor.name(), "'");
    if (!graph.initializers.emplace(tensor.name(), tensor_from_onnx(tensor, owner, folder))
             .second) {
      fail(owner, ": appears twice");
    }
  }
  for (const auto& node : message.node()) {
    if (!std::any_of(node.output().begin(), node.output().end(), wanted)) continue;
    graph.nodes.push_back(is_zip_map(node) ? tensor_instead_of_maps(node)
                                           : read_node(node, file, folder));
  }
  std::vector<std::string> texts;
  for (const auto& input : message.input()) {
    if (graph.initializers.contains(input.name()) || !wanted(input.name())) continue;
    graph.inputs.push_back(read_info(input, file, /*text_allowed=*/true));
    if (is_text(input)) texts.push_back(input.name());
  }
  return texts;
}

// The tensors of the graph up to a node, as far as they do not need others.
Graph graph_before(const onnx::GraphProto& message, const std::string& tensor, int end,
                   const std::string& file, const std::string& folder) {
  std::set<std::string> wanted = {tensor};
  Graph graph;
  for (int i = end - 1; i >= 0; --i) {
    const auto& node = message.node(i);
    if (std::none_of(node.output().begin(), node.output().end(),
                     [&](const std::string& name) { return wanted.contains(name); })) {
      continue;
    }
    graph.nodes.insert(graph.nodes.begin(), read_node(node, file, folder));
    wanted.insert(graph.nodes[0].inputs.begin(), graph.nodes[0].inputs.end());
  }
  for (const auto& each : message.initializer()) {
    if (!wanted.contains(each.name())) continue;
    const std::string owner = concat(file, ": initializer '", each.name(), "'");
    graph.initializers.emplace(each.name(), tensor_from_onnx(each, owner, folder));
  }
  for (const auto& input : message.input()) {
    const bool given = wanted.contains(input.name()) && !graph.initializers.contains(input.name());
    if (given) graph.inputs.push_back(read_info(input, file));
  }
  graph.outputs.resize(1);
  graph.outputs[0].name = tensor;
  graph.outputs[0].type = ElementType::kBool;
  graph.outputs[0].known_rank = false;
  return graph;
}

// What a condition says, from constants alone or from shapes that the file fixes.
std::optional<bool> known_truth(const std::optional<ConstantTensor>& value) {
  if (!value || value->numel() != 1) return std::nullopt;
  return value->number(0) != 0;
}

Graph graph_from(onnx::ModelProto& model, const std::string& file, const std::string& folder,
                 const OnnxOperators& operators) {
  if (!model.has_graph()) fail(file, ": not an ONNX model (it has no graph)");
  const int64_t opset = read_opset(model, file);
  cast_narrow_tensors(*model.mutable_graph(), opset, file);
  const auto known = [&](const onnx::GraphProto& message, const std::string& tensor, int end) {
    Graph before = graph_before(message, tensor, end, file, folder);
    before.opset = opset;
    return operators.value(before);
  };
  resolve_sequences(*model.mutable_graph(), opset, file, known);
  inline_if(*model.mutable_graph(), file,
            [&](const onnx::GraphProto& message, const std::string& tensor, int end) {
              return known_truth(known(message, tensor, end));
            });
  const onnx::GraphProto& message = model.graph();
  if (message.sparse_initializer_size() > 0) fail(file, ": sparse initializers are not supported");

  Graph graph;
  graph.name = message.name();
  graph.opset = opset;
  graph.domains = read_domains(model);
  graph.ir_version = model.ir_version();
  const std::vector<std::string> texts = read_tensors(message, file, folder, graph);
  for (const auto& entry : model.metadata_props()) graph.metadata[entry.key()] = entry.value();
  try {
    sort_and_check(graph);
    operators.number_texts(graph, texts);
    check_weights(graph);
  } catch (const Error& error) {
    fail(file, ": ", error.what());
  }
  return graph;
}

void check_file_size(uint64_t size, const std::string& name) {
  if (size <= static_cast<uint64_t>(std::numeric_limits<int>::max())) return;
  fail(name, ": has ", size,
       " bytes, more than an ONNX file can (2 GiB); store the weights as external data");
}

// What an initializer or a Constant says.
std::optional<ConstantTensor> given_value(const Graph& graph) {
  const std::string& name = graph.outputs[0].name;
  const auto found = graph.initializers.find(name);
  if (found != graph.initializers.end()) return found->second;
  for (const Node& node : graph.nodes) {
    if (node.op != "Constant" || node.outputs[0] != name) continue;
    for (const auto& [key, value] : node.attributes) {
      if (const auto* tensor = std::get_if<ConstantTensor>(&value)) return *tensor;
      if (const auto* integer = std::get_if<int64_t>(&value))
        return constant_tensor<int64_t>({*integer}, {});
      if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
        return constant_tensor(*list);
    }
  }
  return std::nullopt;
}

void refuse_texts(Graph&, const std::vector<std::string>& inputs) {
  if (!inputs.empty())
    fail("input '", inputs[0], "' is text, which only libtorch's part of fcp reads");
}

}  // namespace

OnnxOperators::OnnxOperators() : value(given_value), number_texts(refuse_texts) {}

Graph parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder,
                 const OnnxOperators& operators) {
  check_file_size(bytes.size(), name);
  onnx::ModelProto model;
  if (bytes.empty() || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    fail(name, ": not an ONNX model (", bytes.empty() ? "the file is empty" : "cannot be parsed",
         ")");
  }
  return graph_from(model, name, folder, operators);
}

Graph read_onnx(const std::string& path, const OnnxOperators& operators) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(path, ": no such file");
  if (fs::is_directory(status)) fail(path, ": is a directory, expected an ONNX file");
  if (!fs::is_regular_file(status)) fail(path, ": not a regular file, expected an ONNX file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, ": cannot be read");
  const uint64_t size = fs::file_size(path, error);
  if (!error) check_file_size(size, path);  // before any of it is read
  std::ostringstream bytes;
  if (!error && size > 0) bytes << file.rdbuf();
  const fs::path folder = fs::path(path).parent_path();
  return parse_onnx(bytes.view(), path, folder.empty() ? "." : folder.string(), operators);
}

}  // namespace fcp
