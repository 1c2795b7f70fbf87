#include "fcp/nn/graph/input_layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/nn/ops/types.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

std::string row_shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[N";
  for (const int64_t size : shape) {
    text += ", ";
    text += size == kDynamic ? "?" : std::to_string(size);
  }
  return text + "]";
}

bool fits_input(const TensorInfo& input, const std::vector<int64_t>& shape) {
  if (!input.known_rank) return true;
  if (input.shape.size() != shape.size() + 1) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (input.shape[i + 1] != kDynamic && input.shape[i + 1] != shape[i]) return false;
  }
  return true;
}

int64_t numbers_in(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string layout_text(const InputLayout& layout) {
  Json all = Json::array();
  for (const InputPlace& place : layout.places) {
    const TensorInfo& input = place.input;
    all.push_back({{"name", input.name},
                   {"type", static_cast<int64_t>(input.type)},
                   {"known_rank", input.known_rank},
                   {"shape", input.shape},
                   {"dimension_names", input.dimension_names},
                   {"row", place.shape}});
  }
  return all.dump();
}

std::string part_prefix(const InputPlace& place) {
  return concat(kRowsInput, "/", place.input.name);
}

bool is_part_of_packing(const std::string& name) {
  return name.starts_with(std::string(kRowsInput) + "/");
}

class NodeList {
 public:
  explicit NodeList(Graph& graph) : graph_(graph) {}

  std::string add(const char* op, std::vector<std::string> inputs, const std::string& output,
                  std::map<std::string, Attribute> attributes = {}) {
    nodes.push_back({.name = concat(kRowsInput, "/", output, "/", op),
                     .op = op,
                     .domain = "",
                     .inputs = std::move(inputs),
                     .outputs = {output},
                     .attributes = std::move(attributes)});
    return output;
  }
  std::string constant(const std::string& name, const ConstantTensor& value) {
    graph_.initializers[name] = value;
    return name;
  }

  std::vector<Node> nodes;

 private:
  Graph& graph_;
};

// The nodes that make one input out of its columns.
void add_input(const InputPlace& place, ElementType rows, NodeList& list) {
  const std::string prefix = part_prefix(place);
  std::vector<int64_t> shape = place.shape;
  shape.insert(shape.begin(), -1);
  std::vector<int64_t> indices(static_cast<size_t>(place.columns));
  std::iota(indices.begin(), indices.end(), place.first);
  std::string value =
      list.add("Gather", {kRowsInput, list.constant(prefix + "/indices", constant_tensor(indices))},
               prefix + "/columns", {{"axis", int64_t{1}}});
  if (place.input.type != rows) {
    value = list.add("Cast", {value}, prefix + "/typed",
                     {{"to", static_cast<int64_t>(place.input.type)}});
  }
  list.add("Reshape", {value, list.constant(prefix + "/shape", constant_tensor(shape))},
           place.input.name);
}

// The nodes that put packed rows together from the inputs.
void add_rows(const InputLayout& layout, NodeList& list) {
  const ElementType rows = layout.wide() ? ElementType::kDouble : ElementType::kFloat;
  std::vector<std::string> parts;
  for (const InputPlace& place : layout.places) {
    const std::string prefix = part_prefix(place);
    std::string value = place.input.name;
    if (place.input.type != rows) {
      value = list.add("Cast", {value}, prefix + "/wide", {{"to", static_cast<int64_t>(rows)}});
    }
    const ConstantTensor shape = constant_tensor<int64_t>({-1, place.columns});
    parts.push_back(list.add("Reshape", {value, list.constant(prefix + "/flat_shape", shape)},
                             prefix + "/flat"));
  }
  list.add("Concat", parts, kRowsInput, {{"axis", int64_t{1}}});
}

}  // namespace

bool is_wide(ElementType type) {
  return type == ElementType::kDouble || type == ElementType::kInt64 || type == ElementType::kInt32;
}

std::string InputPlace::column_name(int64_t column) const {
  return shape.empty() || columns == 1 ? input.name : concat(input.name, "[", column, "]");
}

int64_t InputLayout::columns() const {
  return places.empty() ? 0 : places.back().first + places.back().columns;
}

const InputPlace& InputLayout::place_of(int64_t column) const {
  size_t i = 0;
  while (i + 1 < places.size() && places[i + 1].first <= column) ++i;
  return places[i];
}

bool InputLayout::wide() const {
  return std::any_of(places.begin(), places.end(),
                     [](const InputPlace& place) { return is_wide(place.input.type); });
}

InputLayout layout_of(const std::vector<TensorInfo>& inputs,
                      const std::vector<std::vector<int64_t>>& shapes) {
  InputLayout layout;
  int64_t first = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& input = inputs[i];
    if (input.known_rank && input.shape.empty()) {
      fail("input '", input.name, "' is a single number for all rows, which is not supported");
    }
    if (!fits_input(input, shapes[i])) {
      fail("input '", input.name, "': found rows of shape ", row_shape_text(shapes[i]),
           ", expected ", row_shape_text({input.shape.begin() + 1, input.shape.end()}));
    }
    const int64_t columns = numbers_in(shapes[i]);
    if (columns < 1) {
      fail("input '", input.name, "': found rows of shape ", row_shape_text(shapes[i]),
           ", expected at least one number");
    }
    layout.places.push_back({input, shapes[i], first, columns});
    first += columns;
  }
  return layout;
}

std::optional<InputLayout> layout_of(const Graph& network) {
  const auto found = network.metadata.find(kInputsKey);
  if (found == network.metadata.end()) return std::nullopt;
  std::vector<TensorInfo> inputs;
  std::vector<std::vector<int64_t>> shapes;
  Node teller;  // for the message of an unknown type
  teller.op = kInputsKey;
  try {
    for (const Json& one : Json::parse(found->second)) {
      TensorInfo input;
      input.name = one.at("name").get<std::string>();
      input.type = type_of_number(one.at("type").get<int64_t>(), teller);
      input.known_rank = one.at("known_rank").get<bool>();
      input.shape = one.at("shape").get<std::vector<int64_t>>();
      input.dimension_names = one.at("dimension_names").get<std::vector<std::string>>();
      inputs.push_back(std::move(input));
      shapes.push_back(one.at("row").get<std::vector<int64_t>>());
    }
  } catch (const nlohmann::json::exception&) {
    fail("its '", kInputsKey, "' is damaged");
  }
  if (inputs.empty()) fail("its '", kInputsKey, "' names no input");
  return layout_of(inputs, shapes);
}

bool is_packed(const Graph& network) {
  return network.inputs.size() == 1 && network.inputs[0].name == kRowsInput &&
         network.metadata.contains(kInputsKey);
}

std::vector<TensorInfo> own_inputs(const Graph& network) {
  if (!is_packed(network)) return network.inputs;
  std::vector<TensorInfo> inputs;
  const InputLayout layout = *layout_of(network);
  for (const InputPlace& place : layout.places) inputs.push_back(place.input);
  return inputs;
}

Graph pack_inputs(const Graph& network, const InputLayout& layout) {
  Graph packed = network;
  const ElementType rows = layout.wide() ? ElementType::kDouble : ElementType::kFloat;
  NodeList list(packed);
  bool same = network.inputs.size() == layout.places.size();
  TensorInfo input{.name = kRowsInput,
                   .type = rows,
                   .shape = {kDynamic, layout.columns()},
                   .dimension_names = {"batch", ""}};
  for (size_t i = 0; same && i < layout.places.size(); ++i) {
    const TensorInfo& own = network.inputs[i];
    same = own.name == layout.places[i].input.name && fits_input(own, layout.places[i].shape);
    if (own.known_rank && own.shape[0] != kDynamic) input.shape[0] = own.shape[0];
    if (same) add_input(layout.places[i], rows, list);
  }
  if (!same) fail("its inputs are not those of its '", kInputsKey, "'");
  if (input.shape[0] != kDynamic) input.dimension_names[0] = "";
  packed.inputs = {input};
  packed.nodes.insert(packed.nodes.begin(), list.nodes.begin(), list.nodes.end());
  packed.metadata[kInputsKey] = layout_text(layout);
  return packed;
}

Graph unpack_inputs(const Graph& network) {
  if (!is_packed(network)) return network;
  const InputLayout layout = *layout_of(network);
  Graph graph = network;
  graph.inputs = own_inputs(network);
  // Of the packing, only what makes the inputs goes: an export may read tensors of it by name.
  std::set<std::string> needed;
  for (const TensorInfo& output : graph.outputs) needed.insert(output.name);
  const std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const std::string& made = node->outputs[0];
    const bool own = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                 [&](const TensorInfo& input) { return input.name == made; });
    if (is_part_of_packing(node->name) && (own || !needed.contains(made))) continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    graph.nodes.push_back(*node);
  }
  std::reverse(graph.nodes.begin(), graph.nodes.end());
  std::erase_if(graph.initializers, [&](const auto& one) {
    return is_part_of_packing(one.first) && !needed.contains(one.first);
  });
  if (needed.contains(kRowsInput)) {
    NodeList list(graph);
    add_rows(layout, list);
    graph.nodes.insert(graph.nodes.begin(), list.nodes.begin(), list.nodes.end());
  }
  return graph;
}

}  // namespace fcp
