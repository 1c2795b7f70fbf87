#include "fcp/nn/graph/static_sequences.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/graph/inline_if.h"

namespace fcp {
namespace {

constexpr int64_t kMostIterations = 4096;
constexpr size_t kMostNodes = 200'000;  // of a file whose loops are written out

// Its tensors; or, as long as `source` is named, the parts of that tensor along an axis, `part`
// places each, whose number is not known.
struct Sequence {
  std::vector<std::string> items;
  std::string source;
  int64_t axis = 0, part = 1;
  bool keeps_axis = true;
};

int64_t integer_of(const onnx::NodeProto& node, const std::string& name, int64_t fallback) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return fallback;
}

void add_integer(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

bool is_sequence_op(const onnx::NodeProto& node) {
  static const std::set<std::string> kOps = {
      "ConcatFromSequence", "SequenceAt",     "SequenceConstruct", "SequenceEmpty",
      "SequenceErase",      "SequenceInsert", "SequenceLength",    "SplitToSequence"};
  return kOps.contains(node.op_type()) && (node.domain().empty() || node.domain() == "ai.onnx");
}

class SequenceResolver {
 public:
  SequenceResolver(onnx::GraphProto& graph, int64_t opset, const std::string& file,
                   const KnownValue& known)
      : graph_(graph), opset_(opset), file_(file), known_(known) {}

  void work() {
    if (std::none_of(graph_.node().begin(), graph_.node().end(), uses_sequences)) return;
    for (place_ = 0; place_ < graph_.node_size();) {
      const onnx::NodeProto node = graph_.node(place_);
      made_.clear();
      if (unrolls(node)) {
        unroll(node);
        replace(/*again=*/true);
      } else if (resolve(node)) {
        replace(/*again=*/false);
      } else {
        expect_no_sequence(node);
        ++place_;
      }
    }
  }

 private:
  static bool uses_sequences(const onnx::NodeProto& node) {
    if (is_sequence_op(node)) return true;
    return std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
      const auto& inside = attribute.g().node();
      return std::any_of(inside.begin(), inside.end(), uses_sequences);
    });
  }

  std::string owner(const onnx::NodeProto& node) const {
    const std::string name = node.name().empty() && node.output_size() > 0
                                 ? concat(" node making '", node.output(0), "'")
                                 : concat(" node '", node.name(), "'");
    return concat(file_, ": ", node.op_type(), name);
  }

  // The node at place_ by those in made_, which are looked at again or passed by.
  void replace(bool again) {
    std::vector<onnx::NodeProto> nodes;
    for (int i = 0; i < place_; ++i) nodes.push_back(std::move(*graph_.mutable_node(i)));
    for (auto& each : made_) nodes.push_back(std::move(each));
    for (int i = place_ + 1; i < graph_.node_size(); ++i) {
      nodes.push_back(std::move(*graph_.mutable_node(i)));
    }
    if (nodes.size() > kMostNodes) {
      fail(file_, ": has more than ", kMostNodes, " nodes once its loops are written out");
    }
    graph_.clear_node();
    for (auto& each : nodes) *graph_.add_node() = std::move(each);
    if (!again) place_ += static_cast<int>(made_.size());
  }

  onnx::NodeProto& make(const std::string& op, std::vector<std::string> inputs,
                        const std::string& output) {
    onnx::NodeProto node;
    node.set_op_type(op);
    node.set_name(output + "/" + op);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    made_.push_back(std::move(node));
    return made_.back();
  }

  // A constant of integers.
  std::string constant(const std::string& name, const std::vector<int64_t>& values,
                       bool scalar = false, bool truth = false) {
    auto* attribute = make("Constant", {}, name).add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    onnx::TensorProto& tensor = *attribute->mutable_t();
    tensor.set_data_type(truth ? onnx::TensorProto::BOOL : onnx::TensorProto::INT64);
    if (!scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) {
      if (truth) {
        tensor.add_int32_data(static_cast<int32_t>(value));
      } else {
        tensor.add_int64_data(value);
      }
    }
    return name;
  }

  // Squeeze or Unsqueeze along one axis.
  void change_axis(const std::string& op, const std::string& from, const std::string& to,
                   int64_t axis) {
    constexpr int64_t kAxesAreInput = 13;
    if (opset_ >= kAxesAreInput) {
      make(op, {from, constant(to + "/axes", {axis})}, to);
      return;
    }
    auto* attribute = make(op, {from}, to).add_attribute();
    attribute->set_name("axes");
    attribute->set_type(onnx::AttributeProto::INTS);
    attribute->add_ints(axis);
  }

  std::optional<std::vector<int64_t>> integers(const std::string& tensor) const {
    const std::optional<ConstantTensor> value = known_(graph_, tensor, place_);
    if (!value) return std::nullopt;
    return value->integers();
  }

  int64_t known_place(const onnx::NodeProto& node, int input) const {
    const auto value = integers(node.input(input));
    if (!value || value->size() != 1) {
      fail(owner(node), ": the place '", node.input(input),
           "' in a sequence is not known before the network runs; sequences need fixed places");
    }
    return (*value)[0];
  }

  bool is_sequence(const std::string& name) const { return sequences_.contains(name); }

  Sequence& sequence(const onnx::NodeProto& node, int input) {
    const auto found =
        input < node.input_size() ? sequences_.find(node.input(input)) : sequences_.end();
    if (found == sequences_.end()) {
      fail(owner(node), ": input ", input, " is no sequence whose length is known before the ",
           "network runs");
    }
    return found->second;
  }

  void expect_items(const onnx::NodeProto& node, const Sequence& sequence) const {
    if (sequence.source.empty()) return;
    fail(owner(node), ": needs the length of a sequence of parts of '", sequence.source,
         "', which is not known before the network runs");
  }

  void expect_no_sequence(const onnx::NodeProto& node) const {
    for (const std::string& input : node.input()) {
      if (is_sequence(input)) {
        fail(owner(node), ": reads the sequence '", input, "', which is not supported");
      }
    }
  }

  // Whether the node had to do with sequences; made_ then has what stands for it.
  bool resolve(const onnx::NodeProto& node) {
    const std::string& op = node.op_type();
    if (op == "Identity" && node.input_size() == 1 && is_sequence(node.input(0))) {
      sequences_[node.output(0)] = sequences_.at(node.input(0));
      return true;
    }
    if (!is_sequence_op(node)) return false;
    if (node.output_size() != 1) fail(owner(node), ": expected one output");
    if (op == "SequenceEmpty") sequences_[node.output(0)] = {};
    if (op == "SequenceConstruct") {
      sequences_[node.output(0)].items.assign(node.input().begin(), node.input().end());
    }
    if (op == "SequenceInsert" || op == "SequenceErase") change_items(node);
    if (op == "SequenceAt") take_item(node);
    if (op == "SequenceLength") write_length(node);
    if (op == "SplitToSequence") split(node);
    if (op == "ConcatFromSequence") join(node);
    return true;
  }

  void change_items(const onnx::NodeProto& node) {
    Sequence result = sequence(node, 0);
    expect_items(node, result);
    const bool inserts = node.op_type() == "SequenceInsert";
    const int at = inserts ? 2 : 1;
    const auto count = static_cast<int64_t>(result.items.size());
    const bool given = node.input_size() > at && !node.input(at).empty();
    int64_t place = given ? known_place(node, at) : inserts ? count : count - 1;
    if (place < 0) place += count;
    if (place < 0 || place > (inserts ? count : count - 1)) {
      fail(owner(node), ": place ", place, " lies outside a sequence of ", count);
    }
    const auto where = result.items.begin() + place;
    if (inserts) {
      if (node.input_size() < 2) fail(owner(node), ": has no tensor to insert");
      result.items.insert(where, node.input(1));
    } else {
      result.items.erase(where);
    }
    sequences_[node.output(0)] = std::move(result);
  }

  void take_item(const onnx::NodeProto& node) {
    if (node.input_size() != 2) fail(owner(node), ": expected two inputs");
    const Sequence& from = sequence(node, 0);
    int64_t place = known_place(node, 1);
    const std::string& out = node.output(0);
    if (from.source.empty()) {
      const auto count = static_cast<int64_t>(from.items.size());
      if (place < 0) place += count;
      if (place < 0 || place >= count) {
        fail(owner(node), ": place ", place, " lies outside a sequence of ", count);
      }
      make("Identity", {from.items[static_cast<size_t>(place)]}, out);
      return;
    }
    if (place < 0 && from.part != 1) expect_items(node, from);
    const bool last = place == -1;
    const int64_t first = place * from.part;
    const int64_t end = last ? std::numeric_limits<int64_t>::max() : first + from.part;
    const std::string slice = from.keeps_axis ? out : out + "/part";
    const std::string starts = constant(out + "/starts", {first});
    const std::string ends = constant(out + "/ends", {end});
    const std::string axes = constant(out + "/axis", {from.axis});
    make("Slice", {from.source, starts, ends, axes}, slice);
    if (!from.keeps_axis) change_axis("Squeeze", slice, out, from.axis);
  }

  void write_length(const onnx::NodeProto& node) {
    const Sequence& from = sequence(node, 0);
    const std::string& out = node.output(0);
    if (from.source.empty()) {
      constant(out, {static_cast<int64_t>(from.items.size())}, /*scalar=*/true);
      return;
    }
    make("Shape", {from.source}, out + "/shape");
    const std::string axis = constant(out + "/axis", {from.axis}, /*scalar=*/true);
    make("Gather", {out + "/shape", axis}, out + "/size");
    const std::string more = constant(out + "/more", {from.part - 1}, /*scalar=*/true);
    make("Add", {out + "/size", more}, out + "/sum");
    const std::string part = constant(out + "/part", {from.part}, /*scalar=*/true);
    make("Div", {out + "/sum", part}, out);
  }

  void split(const onnx::NodeProto& node) {
    const std::string& out = node.output(0);
    Sequence result;
    result.axis = integer_of(node, "axis", 0);
    const bool given = node.input_size() > 1 && !node.input(1).empty();
    if (!given) {
      result.source = node.input(0);
      result.keeps_axis = integer_of(node, "keepdims", 1) != 0;
      sequences_[out] = std::move(result);
      return;
    }
    const std::optional<ConstantTensor> sizes = known_(graph_, node.input(1), place_);
    if (!sizes) {
      fail(owner(node), ": the sizes '", node.input(1),
           "' are not known before the network runs; sequences need fixed ones");
    }
    const std::vector<int64_t> numbers = *integers(node.input(1));
    if (numbers.empty() ||
        *std::min_element(numbers.begin(), numbers.end()) < (sizes->dim() == 0)) {
      fail(owner(node), ": has no parts, or parts of a size that cannot be");
    }
    if (sizes->dim() == 0) {
      result.source = node.input(0);
      result.part = numbers[0];
      sequences_[out] = std::move(result);
      return;
    }
    constexpr int64_t kSizesAreInput = 13;
    std::vector<std::string> inputs = {node.input(0)};
    if (opset_ >= kSizesAreInput) inputs.push_back(constant(out + "/sizes", numbers));
    onnx::NodeProto& part = make("Split", inputs, out + "/0");
    add_integer(part, "axis", result.axis);
    if (opset_ < kSizesAreInput) {
      auto* attribute = part.add_attribute();
      attribute->set_name("split");
      attribute->set_type(onnx::AttributeProto::INTS);
      for (const int64_t number : numbers) attribute->add_ints(number);
    }
    result.items = {out + "/0"};
    for (size_t i = 1; i < numbers.size(); ++i) {
      result.items.push_back(concat(out, "/", i));
      part.add_output(result.items.back());
    }
    sequences_[out] = std::move(result);
  }

  void join(const onnx::NodeProto& node) {
    const Sequence& from = sequence(node, 0);
    const std::string& out = node.output(0);
    const int64_t axis = integer_of(node, "axis", 0);
    const bool stacks = integer_of(node, "new_axis", 0) != 0;
    const bool whole = !from.source.empty() && axis == from.axis && stacks != from.keeps_axis;
    if (whole) {
      make("Identity", {from.source}, out);
      return;
    }
    expect_items(node, from);
    if (from.items.empty()) fail(owner(node), ": joins an empty sequence");
    std::vector<std::string> parts;
    for (size_t i = 0; i < from.items.size(); ++i) {
      parts.push_back(from.items[i]);
      if (!stacks) continue;
      parts.back() = concat(out, "/", i);
      change_axis("Unsqueeze", from.items[i], parts.back(), axis);
    }
    add_integer(make("Concat", parts, out), "axis", axis);
  }

  // A loop over a sequence.
  bool unrolls(const onnx::NodeProto& node) const {
    if (node.op_type() != "Loop" || !node.domain().empty()) return false;
    return std::any_of(node.input().begin(), node.input().end(),
                       [&](const std::string& input) { return is_sequence(input); });
  }

  void unroll(const onnx::NodeProto& node) {
    const auto body = std::find_if(node.attribute().begin(), node.attribute().end(),
                                   [](const auto& each) { return each.name() == "body"; });
    const int carried = node.input_size() - 2;
    if (body == node.attribute().end() || carried < 0 || body->g().input_size() != carried + 2 ||
        body->g().output_size() < carried + 1 ||
        node.output_size() != body->g().output_size() - 1) {
      fail(owner(node), ": its body does not have the inputs and outputs of the loop");
    }
    const auto count = node.input(0).empty() ? std::nullopt : integers(node.input(0));
    if (!count || count->size() != 1 || (*count)[0] < 0 || (*count)[0] > kMostIterations) {
      fail(owner(node), ": carries a sequence, and how often it runs (at most ", kMostIterations,
           " times) is not known before the network runs");
    }
    if (!node.input(1).empty()) {
      const auto go = integers(node.input(1));
      if (!go || go->size() != 1 || (*go)[0] == 0) stop_not_known(node);
    }
    if (!goes_on(body->g())) stop_not_known(node);
    write_iterations(node, body->g(), (*count)[0]);
  }

  [[noreturn]] void stop_not_known(const onnx::NodeProto& node) const {
    fail(owner(node), ": carries a sequence and ends by a condition, which is not supported");
  }

  // Whether the body's condition is what it was given, or a constant truth.
  static bool goes_on(const onnx::GraphProto& body) {
    std::string name = body.output(0).name();
    for (int i = body.node_size() - 1; i >= 0; --i) {
      const auto& node = body.node(i);
      if (node.output_size() != 1 || node.output(0) != name) continue;
      if (node.op_type() == "Identity" && node.input_size() == 1) name = node.input(0);
      if (node.op_type() != "Constant") continue;
      const auto& tensor = node.attribute_size() == 1 ? node.attribute(0).t() : onnx::TensorProto();
      return tensor.data_type() == onnx::TensorProto::BOOL &&
             (tensor.raw_data() == std::string(1, '\1') ||
              (tensor.int32_data_size() == 1 && tensor.int32_data(0) != 0));
    }
    for (const auto& tensor : body.initializer()) {
      if (tensor.name() != name) continue;
      return tensor.raw_data() == std::string(1, '\1') ||
             (tensor.int32_data_size() == 1 && tensor.int32_data(0) != 0);
    }
    return name == body.input(1).name();
  }

  void write_iterations(const onnx::NodeProto& node, const onnx::GraphProto& body, int64_t count) {
    const int carried = node.input_size() - 2;
    const int scans = node.output_size() - carried;
    std::vector<std::string> state;
    for (int i = 0; i < carried; ++i) state.push_back(node.input(i + 2));
    std::vector<std::vector<std::string>> collected(static_cast<size_t>(scans));
    const std::string prefix = node.output(0) + "/loop/";
    TensorNames shared;  // of the body's constants, which all iterations read
    for (const auto& tensor : body.initializer()) {
      shared[tensor.name()] = prefix + tensor.name();
      onnx::TensorProto& copy = *graph_.add_initializer();
      copy = tensor;
      copy.set_name(prefix + tensor.name());
    }
    for (int64_t k = 0; k < count; ++k) {
      const std::string own = concat(prefix, k, "/");
      TensorNames names = shared;
      names[body.input(0).name()] = constant(own + "iteration", {k}, /*scalar=*/true);
      names[body.input(1).name()] = constant(own + "goes", {1}, /*scalar=*/true, /*truth=*/true);
      for (int i = 0; i < carried; ++i)
        names[body.input(i + 2).name()] = state[static_cast<size_t>(i)];
      for (const auto& each : body.node()) {
        for (const std::string& output : each.output()) {
          if (!output.empty()) names[output] = own + output;
        }
      }
      for (const auto& each : body.node()) {
        onnx::NodeProto inner = each;
        rename_tensors(inner, names);
        made_.push_back(std::move(inner));
      }
      if (made_.size() > kMostNodes) {
        fail(owner(node), ": is more than ", kMostNodes, " nodes when it is written out");
      }
      const auto outside = [&](int output) {
        const std::string& name = body.output(output).name();
        const auto found = names.find(name);
        return found == names.end() ? name : found->second;
      };
      for (int i = 0; i < carried; ++i) state[static_cast<size_t>(i)] = outside(i + 1);
      for (int i = 0; i < scans; ++i) {
        const std::string part = concat(own, "scan/", i);
        change_axis("Unsqueeze", outside(carried + 1 + i), part, 0);
        collected[static_cast<size_t>(i)].push_back(part);
      }
    }
    for (int i = 0; i < carried; ++i) {
      if (!node.output(i).empty())
        make("Identity", {state[static_cast<size_t>(i)]}, node.output(i));
    }
    for (int i = 0; i < scans; ++i) {
      if (node.output(carried + i).empty()) continue;
      if (count == 0) fail(owner(node), ": gathers the results of no iteration");
      add_integer(make("Concat", collected[static_cast<size_t>(i)], node.output(carried + i)),
                  "axis", 0);
    }
  }

  onnx::GraphProto& graph_;
  int64_t opset_;
  const std::string& file_;
  const KnownValue& known_;
  int place_ = 0;
  std::vector<onnx::NodeProto> made_;
  std::map<std::string, Sequence> sequences_;
};

}  // namespace

void resolve_sequences(onnx::GraphProto& graph, int64_t opset, const std::string& file,
                       const KnownValue& known) {
  SequenceResolver(graph, opset, file, known).work();
}

}  // namespace fcp
