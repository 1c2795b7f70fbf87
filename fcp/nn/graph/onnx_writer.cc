#include "fcp/nn/graph/onnx_writer.h"

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/nn/graph/onnx_tensor.h"

namespace fcp {
namespace {

using Proto = onnx::AttributeProto;

void write_inside(const Graph& inner, const std::vector<std::string>& captured,
                  onnx::GraphProto& message);

// One overload a kind of attribute.
struct AttributeWriter {
  Proto& message;
  const std::vector<std::string>& captured;  // the tensors around the node that its graphs read

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
  void operator()(const ConstantTensor& value) const {
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
  void operator()(const Subgraph& inner) const {
    message.set_type(Proto::GRAPH);
    write_inside(*inner, captured, *message.mutable_g());
  }
};

void write_info(const TensorInfo& info, onnx::ValueInfoProto& message) {
  message.set_name(info.name);
  if (info.type == ElementType::kUndefined) return;
  auto* tensor = message.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(static_cast<int32_t>(info.type));
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
  const auto own = node.inputs.end() - static_cast<std::ptrdiff_t>(node.captured);
  const std::vector<std::string> captured(own, node.inputs.end());
  for (auto input = node.inputs.begin(); input != own; ++input) message.add_input(*input);
  for (const std::string& output : node.outputs) message.add_output(output);
  for (const auto& [name, value] : node.attributes) {
    Proto& attribute = *message.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute, captured}, value);
  }
}

// A graph inside a node reads tensors around it by their names, which may have changed since the
// file was read: an Identity then leads from the new name to the old one.
void write_inside(const Graph& inner, const std::vector<std::string>& captured,
                  onnx::GraphProto& message) {
  message.set_name(inner.name.empty() ? "inside" : inner.name);
  const size_t own = inner.inputs.size() - captured.size();
  for (size_t i = 0; i < own; ++i) write_info(inner.inputs[i], *message.add_input());
  for (size_t i = 0; i < captured.size(); ++i) {
    const std::string& name = inner.inputs[own + i].name;
    if (name == captured[i]) continue;
    onnx::NodeProto& node = *message.add_node();
    node.set_op_type("Identity");
    node.add_input(captured[i]);
    node.add_output(name);
  }
  for (const Node& node : inner.nodes) write_node(node, *message.add_node());
  for (const auto& [name, tensor] : inner.initializers) {
    tensor_to_onnx(name, tensor, *message.add_initializer());
  }
  for (const TensorInfo& output : inner.outputs) write_info(output, *message.add_output());
}

// What stands before the bytes of a field whose length is told: protobuf's own encoding.
std::string length_prefix(int field, size_t length) {
  std::string bytes;
  for (uint64_t number : {static_cast<uint64_t>(field) << 3 | 2, uint64_t{length}}) {
    for (; number >= 128; number >>= 7) bytes += static_cast<char>(number % 128 + 128);
    bytes += static_cast<char>(number);
  }
  return bytes;
}

// An initializer: what stands before its numbers, and these, where they are.
struct InitializerBytes {
  std::string head;
  ConstantTensor numbers;

  InitializerBytes(const std::string& name, const ConstantTensor& tensor) : numbers(tensor) {
    onnx::TensorProto message;
    header_to_onnx(name, tensor, message);
    const std::string fields =
        message.SerializeAsString() +
        length_prefix(onnx::TensorProto::kRawDataFieldNumber, numbers.nbytes());
    head =
        length_prefix(onnx::GraphProto::kInitializerFieldNumber, fields.size() + numbers.nbytes()) +
        fields;
  }
  std::string_view body() const {
    return {static_cast<const char*>(numbers.data()), numbers.nbytes()};
  }
  size_t size() const { return head.size() + numbers.nbytes(); }
};

// The file in pieces, in the order of the fields' numbers, as protobuf has them. It is not built
// as one message because that would hold the numbers of all initializers twice more.
class OnnxPieces {
 public:
  // file: its name, for messages.
  OnnxPieces(const Graph& graph, const std::string& file) {
    onnx::ModelProto before, after;
    before.set_ir_version(graph.ir_version);
    before.set_producer_name("fcp");
    after.add_opset_import()->set_version(graph.opset);
    for (const auto& [domain, version] : graph.domains) {
      auto* import = after.add_opset_import();
      import->set_domain(domain);
      import->set_version(version);
    }
    for (const auto& [key, value] : graph.metadata) {
      auto* entry = after.add_metadata_props();
      entry->set_key(key);
      entry->set_value(value);
    }
    onnx::GraphProto front, back;
    front.set_name(graph.name.empty() ? "network" : graph.name);
    for (const Node& node : graph.nodes) write_node(node, *front.add_node());
    for (const TensorInfo& input : graph.inputs) write_info(input, *back.add_input());
    for (const TensorInfo& output : graph.outputs) write_info(output, *back.add_output());
    front_ = front.SerializeAsString();
    back_ = back.SerializeAsString();
    size_t graph_size = front_.size() + back_.size();
    for (const auto& [name, tensor] : graph.initializers) {
      graph_size += initializers_.emplace_back(name, tensor).size();
    }
    before_ =
        before.SerializeAsString() + length_prefix(onnx::ModelProto::kGraphFieldNumber, graph_size);
    after_ = after.SerializeAsString();
    size_ = before_.size() + graph_size + after_.size();
    if (size_ > static_cast<size_t>(std::numeric_limits<int>::max())) {
      fail(file, ": the network has ", size_, " bytes, more than an ONNX file can (2 GiB)");
    }
  }

  size_t size() const { return size_; }

  template <typename Take>
  void give(Take take) const {
    take(std::string_view(before_));
    take(std::string_view(front_));
    for (const InitializerBytes& initializer : initializers_) {
      take(std::string_view(initializer.head));
      take(initializer.body());
    }
    take(std::string_view(back_));
    take(std::string_view(after_));
  }

 private:
  std::string before_, front_, back_, after_;
  std::vector<InitializerBytes> initializers_;
  size_t size_ = 0;
};

}  // namespace

std::string serialize_onnx(const Graph& graph) {
  const OnnxPieces pieces(graph, "ONNX");
  std::string bytes;
  bytes.reserve(pieces.size());
  pieces.give([&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void write_onnx(const Graph& graph, const std::string& path) {
  const OnnxPieces pieces(graph, path);
  OutputFile file(path);
  pieces.give([&](std::string_view piece) { file.write(piece); });
  file.commit();
}

}  // namespace fcp
