#include "fcp/network/onnx_writer.h"

#include <limits>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/network/onnx_tensor.h"

namespace fcp {
namespace {

using Proto = onnx::AttributeProto;

// One overload a kind of attribute.
struct AttributeWriter {
  Proto& message;

  void operator()(int64_t value) const {
    message.set_type(Proto::INT);
    message.set_i(value);
  }
  void operator()(float value) const {
    message.set_type(Proto::FLOAT);
    message.set_f(value);
  }
  void operator()(const std::string& value) const {
    message.set_type(Proto::STRING);
    message.set_s(value);
  }
  void operator()(const torch::Tensor& value) const {
    message.set_type(Proto::TENSOR);
    tensor_to_onnx("", value, *message.mutable_t());
  }
  void operator()(const std::vector<int64_t>& values) const {
    message.set_type(Proto::INTS);
    for (const int64_t value : values) message.add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    message.set_type(Proto::FLOATS);
    for (const float value : values) message.add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    message.set_type(Proto::STRINGS);
    for (const std::string& value : values) message.add_strings(value);
  }
};

void write_info(const TensorInfo& info, onnx::ValueInfoProto& message) {
  message.set_name(info.name);
  auto* tensor = message.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(*onnx_type(info.type));
  if (!info.known_rank) return;
  auto* shape = tensor->mutable_shape();
  for (size_t i = 0; i < info.shape.size(); ++i) {
    auto* dimension = shape->add_dim();
    if (info.shape[i] != kDynamic) {
      dimension->set_dim_value(info.shape[i]);
    } else if (i < info.dimension_names.size() && !info.dimension_names[i].empty()) {
      dimension->set_dim_param(info.dimension_names[i]);
    }
  }
}

void write_node(const Node& node, onnx::NodeProto& message) {
  message.set_name(node.name);
  message.set_op_type(node.op);
  if (!node.domain.empty()) message.set_domain(node.domain);
  for (const std::string& input : node.inputs) message.add_input(input);
  for (const std::string& output : node.outputs) message.add_output(output);
  for (const auto& [name, value] : node.attributes) {
    Proto& attribute = *message.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
}

}  // namespace

std::string serialize_onnx(const Graph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(graph.ir_version);
  model.set_producer_name("fcp");
  model.add_opset_import()->set_version(graph.opset);
  for (const auto& [key, value] : graph.metadata) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  onnx::GraphProto& message = *model.mutable_graph();
  message.set_name(graph.name.empty() ? "network" : graph.name);
  for (const Node& node : graph.nodes) write_node(node, *message.add_node());
  for (const auto& [name, tensor] : graph.initializers) {
    tensor_to_onnx(name, tensor, *message.add_initializer());
  }
  for (const TensorInfo& input : graph.inputs) write_info(input, *message.add_input());
  for (const TensorInfo& output : graph.outputs) write_info(output, *message.add_output());

  if (model.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    fail("the network has ", model.ByteSizeLong(), " bytes, more than an ONNX file can (2 GiB)");
  }
  std::string bytes;
  bytes.reserve(model.ByteSizeLong());  // growing it by doubling would hold it three times
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    if (!model.SerializeToCodedStream(&coded)) fail("the network cannot be serialised");
  }
  return bytes;
}

void write_onnx(const Graph& graph, const std::string& path) {
  write_file(path, serialize_onnx(graph));
}

}  // namespace fcp
