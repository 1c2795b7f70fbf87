// From the body of an infer request to a TensorRequest.
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/server/tensor_bytes.h"
#include "apps/server/tensor_message.h"

namespace fcp {
namespace {

using Json = nlohmann::json;

const Json* member(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

std::string text_member(const Json& json, const char* name, const std::string& where) {
  const Json* found = member(json, name);
  if (found == nullptr || !found->is_string()) fail(where, ": has no text '", name, "'");
  return found->get<std::string>();
}

bool flag_parameter(const Json& json, const char* name, bool otherwise) {
  const Json* parameters = member(json, "parameters");
  if (parameters == nullptr || !parameters->is_object()) return otherwise;
  const Json* found = member(*parameters, name);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) fail("the parameter '", name, "' is not true or false");
  return found->get<bool>();
}

// The product, which must stay small enough for what a body can hold.
size_t element_product(const std::vector<int64_t>& shape, const std::string& where) {
  constexpr size_t kMost = size_t{1} << 32;
  size_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || static_cast<size_t>(size) > kMost) fail(where, ": its shape is not one");
    count *= static_cast<size_t>(size);
    if (count > kMost) fail(where, ": its shape is too large");
  }
  return count;
}

std::vector<int64_t> shape_of(const Json& json, const std::string& where) {
  const Json* found = member(json, "shape");
  if (found == nullptr || !found->is_array() || found->empty() || found->size() > 16) {
    fail(where, ": has no 'shape' of 1 to 16 sizes");
  }
  std::vector<int64_t> shape;
  for (const Json& size : *found) {
    if (!size.is_number_integer()) fail(where, ": its shape is not one of whole numbers");
    shape.push_back(size.get<int64_t>());
  }
  return shape;
}

double json_double(const Json& value, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  fail(where, ": found ", value.dump().substr(0, 40), " among its data, expected a number");
}

// The leaves of nested lists, in their order.
void add_leaves(const Json& data, int depth, std::vector<const Json*>& leaves,
                const std::string& where) {
  if (depth > 16) fail(where, ": its data is nested too deep");
  for (const Json& value : data) {
    if (value.is_array()) {
      add_leaves(value, depth + 1, leaves, where);
    } else {
      leaves.push_back(&value);
    }
  }
}

decltype(NamedValues::values) read_json_data(const Json& json, const std::string& type,
                                             size_t count, const std::string& where) {
  const Json* data = member(json, "data");
  if (data == nullptr || !data->is_array()) fail(where, ": has no list 'data'");
  std::vector<const Json*> leaves;
  add_leaves(*data, 0, leaves, where);
  if (leaves.size() != count) {
    fail(where, ": found ", leaves.size(), " values, its shape has ", count);
  }
  if (type != "BYTES") {
    std::vector<double> numbers;
    for (const Json* leaf : leaves) numbers.push_back(json_double(*leaf, where));
    return numbers;
  }
  std::vector<std::string> texts;
  for (const Json* leaf : leaves) {
    if (leaf->is_string()) {
      texts.push_back(leaf->get<std::string>());
    } else if (leaf->is_null()) {
      texts.emplace_back();
    } else if (leaf->is_number()) {
      texts.push_back(leaf->dump());
    } else {
      fail(where, ": found ", leaf->dump().substr(0, 40), ", expected text");
    }
  }
  return texts;
}

bool known_datatype(const std::string& type) {
  for (const char* known : {"FP32", "FP64", "INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32",
                            "UINT16", "UINT8", "BOOL", "BYTES"}) {
    if (type == known) return true;
  }
  return false;
}

std::optional<size_t> binary_size(const Json& json, const std::string& where) {
  const Json* parameters = member(json, "parameters");
  if (parameters == nullptr || !parameters->is_object()) return std::nullopt;
  const Json* size = member(*parameters, "binary_data_size");
  if (size == nullptr) return std::nullopt;
  if (!size->is_number_unsigned()) fail(where, ": its binary_data_size is not a number of bytes");
  return size->get<size_t>();
}

NamedValues read_input(const Json& json, std::string_view& bytes, const TensorLimits& limits) {
  if (!json.is_object()) fail("an input is not an object");
  NamedValues tensor;
  tensor.name = text_member(json, "name", "an input");
  const std::string where = concat("input '", tensor.name.substr(0, 80), "'");
  const std::string type = text_member(json, "datatype", where);
  if (!known_datatype(type)) {
    fail(where, ": the datatype '", type.substr(0, 40), "' is not understood");
  }
  tensor.shape = shape_of(json, where);
  const size_t count = element_product(tensor.shape, where);
  if (static_cast<size_t>(tensor.shape[0]) > limits.rows) {
    fail(where, ": found ", tensor.shape[0], " rows, at most ", limits.rows, " are taken at once");
  }
  if (const auto size = binary_size(json, where)) {
    if (*size > bytes.size()) fail(where, ": the body ends before its ", *size, " bytes");
    tensor.values = read_binary_data(bytes.substr(0, *size), type, count, where);
    bytes.remove_prefix(*size);
  } else {
    tensor.values = read_json_data(json, type, count, where);
  }
  return tensor;
}

std::vector<RequestedOutput> read_outputs(const Json& json, bool binary) {
  if (!json.is_array()) fail("'outputs' is not a list");
  std::vector<RequestedOutput> outputs;
  std::set<std::string> names;  // the same one a thousand times would make a thousand copies
  for (const Json& one : json) {
    if (!one.is_object()) fail("an output is not an object");
    outputs.push_back(
        {text_member(one, "name", "an output"), flag_parameter(one, "binary_data", binary)});
    if (!names.insert(outputs.back().name).second) {
      fail("output '", outputs.back().name.substr(0, 80), "' is named twice");
    }
  }
  return outputs;
}

std::string levels_in(const Json& json) {
  const Json* parameters = member(json, "parameters");
  if (parameters == nullptr) return "";
  if (!parameters->is_object()) fail("'parameters' is not an object");
  const Json* alpha = member(*parameters, "alpha");
  if (alpha == nullptr) return "";
  if (alpha->is_string()) return alpha->get<std::string>();
  if (alpha->is_number()) return alpha->dump();
  fail("the parameter 'alpha' is ", alpha->dump().substr(0, 40),
       ", expected a number, or text with commas between numbers");
}

Json parse_json(std::string_view text) {
  // Depth is bounded before the library recurses.
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > 32) fail("the JSON is nested too deep");
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) fail("the body is not a JSON object");
  return json;
}

}  // namespace

void check_id(const std::string& id) {
  constexpr size_t kLongest = 512;
  if (id.size() > kLongest) fail("'id' has ", id.size(), " bytes, at most ", kLongest, " are kept");
  if (id.find('\0') != std::string::npos) fail("'id' has a NUL in it");
}

TensorRequest parse_tensor_request(std::string_view body, std::optional<size_t> header_size,
                                   const TensorLimits& limits) {
  if (header_size && *header_size > body.size()) {
    fail("Inference-Header-Content-Length is ", *header_size, ", the body has ", body.size());
  }
  const Json json = parse_json(body.substr(0, header_size.value_or(body.size())));
  std::string_view bytes = header_size ? body.substr(*header_size) : std::string_view();
  TensorRequest request;
  if (const Json* id = member(json, "id")) {
    if (!id->is_string()) fail("'id' is not text");
    request.id = id->get<std::string>();
    check_id(request.id);
  }
  request.alpha = levels_in(json);
  request.binary_outputs = flag_parameter(json, "binary_data_output", false);
  const Json* inputs = member(json, "inputs");
  if (inputs == nullptr || !inputs->is_array() || inputs->empty()) fail("there are no 'inputs'");
  if (inputs->size() > limits.inputs) {
    fail("found ", inputs->size(), " inputs, at most ", limits.inputs, " are taken");
  }
  std::set<std::string> names;
  for (const Json& one : *inputs) {
    request.inputs.push_back(read_input(one, bytes, limits));
    const std::string& name = request.inputs.back().name;
    if (!names.insert(name).second) fail("input '", name.substr(0, 80), "' is given twice");
  }
  if (!bytes.empty()) fail("there are ", bytes.size(), " bytes after the last input");
  if (const Json* outputs = member(json, "outputs")) {
    request.outputs = read_outputs(*outputs, request.binary_outputs);
  }
  return request;
}

}  // namespace fcp
