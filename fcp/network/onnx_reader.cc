#include "fcp/network/onnx_reader.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/onnx_tensor.h"

namespace fcp {
namespace {

Attribute read_attribute(const onnx::AttributeProto& message, const std::string& owner,
                         const std::string& folder) {
  using Proto = onnx::AttributeProto;
  switch (message.type()) {
    case Proto::INT:
      return message.i();
    case Proto::FLOAT:
      return message.f();
    case Proto::STRING:
      return message.s();
    case Proto::TENSOR:
      return tensor_from_onnx(message.t(), concat(owner, ", attribute '", message.name(), "'"),
                              folder);
    case Proto::INTS:
      return std::vector<int64_t>(message.ints().begin(), message.ints().end());
    case Proto::FLOATS:
      return std::vector<float>(message.floats().begin(), message.floats().end());
    case Proto::STRINGS:
      return std::vector<std::string>(message.strings().begin(), message.strings().end());
    default:
      fail(owner, ": attribute '", message.name(),
           "' holds a graph or another type that is not supported");
  }
}

Node read_node(const onnx::NodeProto& message, const std::string& file, const std::string& folder) {
  Node node;
  node.name = message.name();
  node.op = message.op_type();
  node.domain = message.domain() == "ai.onnx" ? "" : message.domain();
  node.inputs.assign(message.input().begin(), message.input().end());
  node.outputs.assign(message.output().begin(), message.output().end());
  for (const auto& attribute : message.attribute()) {
    const std::string owner = concat(file, ": ", describe(node));
    if (!node.attributes.emplace(attribute.name(), read_attribute(attribute, owner, folder))
             .second) {
      fail(owner, ": attribute '", attribute.name(), "' appears twice");
    }
  }
  return node;
}

TensorInfo read_info(const onnx::ValueInfoProto& message, const std::string& file) {
  TensorInfo info;
  info.name = message.name();
  if (info.name.empty()) fail(file, ": an input or output has no name");
  if (!message.type().has_tensor_type()) {
    fail(file, ": '", info.name, "' is not a tensor (sequences and maps are not supported)");
  }
  const auto& tensor = message.type().tensor_type();
  const std::optional<torch::ScalarType> type = torch_type(tensor.elem_type());
  if (!type) fail(file, ": '", info.name, "' has an unsupported element type");
  info.type = *type;
  info.known_rank = tensor.has_shape();
  for (const auto& dimension : tensor.shape().dim()) {
    const bool known = dimension.has_dim_value() && dimension.dim_value() > 0;
    info.shape.push_back(known ? dimension.dim_value() : kDynamic);
    info.dimension_names.push_back(known ? "" : dimension.dim_param());
  }
  return info;
}

int64_t read_opset(const onnx::ModelProto& model, const std::string& file) {
  for (const auto& import : model.opset_import()) {
    if (!import.domain().empty() && import.domain() != "ai.onnx") continue;
    if (import.version() < kOldestOpset || import.version() > kNewestOpset) {
      fail(file, ": uses ONNX operator set ", import.version(), ", supported are ", kOldestOpset,
           " to ", kNewestOpset);
    }
    return import.version();
  }
  fail(file, ": not an ONNX model (it names no operator set)");
}

// A layer's weight that is no finite number makes answers NaN or infinite, far from the cause.
// Other constants may be infinite: masks and limits often are.
void check_weights(const Graph& graph) {
  static const std::set<std::string> kLayers = {"Gemm", "MatMul", "Conv", "ConvTranspose",
                                                "BatchNormalization"};
  for (const Node& node : graph.nodes) {
    if (!kLayers.contains(node.op)) continue;
    for (const std::string& name : node.inputs) {
      const auto found = graph.initializers.find(name);
      if (found == graph.initializers.end() || !found->second.is_floating_point()) continue;
      const torch::Tensor values = found->second.flatten();
      const torch::Tensor finite = torch::isfinite(values);
      if (finite.all().item<bool>()) continue;
      const auto element = finite.logical_not().nonzero().flatten()[0].item<int64_t>();
      fail(describe(node), ": its weight '", name, "' is ",
           std::isnan(values[element].item<double>()) ? "NaN" : "infinite", " at element ", element,
           " (from 0), expected a finite number");
    }
  }
}

Graph graph_from(const onnx::ModelProto& model, const std::string& file,
                 const std::string& folder) {
  if (!model.has_graph()) fail(file, ": not an ONNX model (it has no graph)");
  const onnx::GraphProto& message = model.graph();
  if (message.sparse_initializer_size() > 0) fail(file, ": sparse initializers are not supported");

  Graph graph;
  graph.name = message.name();
  graph.opset = read_opset(model, file);
  graph.ir_version = model.ir_version();
  for (const auto& tensor : message.initializer()) {
    const std::string owner = concat(file, ": initializer '", tensor.name(), "'");
    if (!graph.initializers.emplace(tensor.name(), tensor_from_onnx(tensor, owner, folder))
             .second) {
      fail(owner, ": appears twice");
    }
  }
  for (const auto& node : message.node()) graph.nodes.push_back(read_node(node, file, folder));
  for (const auto& input : message.input()) {
    if (!graph.initializers.contains(input.name())) graph.inputs.push_back(read_info(input, file));
  }
  for (const auto& output : message.output()) graph.outputs.push_back(read_info(output, file));
  for (const auto& entry : model.metadata_props()) graph.metadata[entry.key()] = entry.value();
  try {
    sort_and_check(graph);
    check_weights(graph);
  } catch (const Error& error) {
    fail(file, ": ", error.what());
  }
  return graph;
}

}  // namespace

Graph parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    fail(name, ": has ", bytes.size(),
         " bytes, more than an ONNX file can (2 GiB); store the weights as external data");
  }
  onnx::ModelProto model;
  if (bytes.empty() || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    fail(name, ": not an ONNX model (", bytes.empty() ? "the file is empty" : "cannot be parsed",
         ")");
  }
  return graph_from(model, name, folder);
}

Graph read_onnx(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(path, ": no such file");
  if (fs::is_directory(status)) fail(path, ": is a directory, expected an ONNX file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, ": cannot be read");
  std::ostringstream bytes;
  if (fs::file_size(path, error) > 0 && !error) bytes << file.rdbuf();
  const fs::path folder = fs::path(path).parent_path();
  return parse_onnx(bytes.view(), path, folder.empty() ? "." : folder.string());
}

}  // namespace fcp
