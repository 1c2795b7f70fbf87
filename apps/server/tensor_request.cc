// From the body of an infer request to a TensorRequest.
#include <algorithm>
#include <initializer_list>
#include <set>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/server/json_messages.h"
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

// Of the request, an input or an output. What is not known would be a wish that nobody hears.
void check_parameters(const Json& json, std::initializer_list<std::string_view> known) {
  const Json* parameters = member(json, "parameters");
  if (parameters == nullptr) return;
  if (!parameters->is_object()) fail("'parameters' is not an object");
  for (const auto& [name, value] : parameters->items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (const std::string_view one : known) all += concat(all.empty() ? "'" : ", '", one, "'");
    fail("the parameter '", name.substr(0, 40), "' is not known; here there are ", all);
  }
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

decltype(NamedValues::values) take_data(JsonData* data, const std::string& type, size_t count,
                                        const std::string& where) {
  if (data == nullptr) fail(where, ": has no list 'data'");
  if (data->count != count) {
    fail(where, ": found ", data->count, " values, its shape has ", count);
  }
  if (type == "BYTES") {
    if (data->no_text.empty()) return std::move(data->texts);
    fail(where, ": found ", data->no_text, ", expected text");
  }
  if (data->no_number.empty()) return std::move(data->numbers);
  fail(where, ": found ", data->no_number, " among its data, expected a number");
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

NamedValues read_input(const Json& json, JsonData* data, std::string_view& bytes,
                       const TensorLimits& limits) {
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
  check_parameters(json, {"binary_data_size"});
  if (const auto size = binary_size(json, where)) {
    if (data != nullptr) fail(where, ": has 'data' and binary_data_size");
    if (*size > bytes.size()) fail(where, ": the body ends before its ", *size, " bytes");
    tensor.values = read_binary_data(bytes.substr(0, *size), type, count, where);
    bytes.remove_prefix(*size);
  } else {
    tensor.values = take_data(data, type, count, where);
  }
  return tensor;
}

std::vector<RequestedOutput> read_outputs(const Json& json, bool binary) {
  if (!json.is_array()) fail("'outputs' is not a list");
  std::vector<RequestedOutput> outputs;
  std::set<std::string> names;  // the same one a thousand times would make a thousand copies
  for (const Json& one : json) {
    if (!one.is_object()) fail("an output is not an object");
    check_parameters(one, {"binary_data"});
    outputs.push_back(
        {text_member(one, "name", "an output"), flag_parameter(one, "binary_data", binary)});
    if (!names.insert(outputs.back().name).second) {
      fail("output '", outputs.back().name.substr(0, 80), "' is named twice");
    }
  }
  return outputs;
}

// A number, or text with commas between numbers; "" where there is none.
std::string numbers_in(const Json& json, const char* name) {
  const Json* parameters = member(json, "parameters");
  if (parameters == nullptr) return "";
  if (!parameters->is_object()) fail("'parameters' is not an object");
  const Json* found = member(*parameters, name);
  if (found == nullptr) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number()) return found->dump();
  fail("the parameter '", name, "' is ", found->dump().substr(0, 40),
       ", expected a number, or text with commas between numbers");
}

std::vector<std::string> texts_in(const Json& json, const char* name) {
  constexpr size_t kMost = 100;
  const std::string text = numbers_in(json, name);
  std::vector<std::string> found;
  for (size_t from = 0; !text.empty() && from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    found.push_back(text.substr(from, to - from));
    if (found.size() > kMost) fail("the parameter '", name, "' has more than ", kMost, " numbers");
    from = to + 1;
  }
  return found;
}

// Seconds, from Triton's microseconds.
std::optional<double> timeout_in(const Json& json) {
  const Json* parameters = member(json, "parameters");
  const Json* timeout = parameters == nullptr ? nullptr : member(*parameters, "timeout");
  if (timeout == nullptr) return std::nullopt;
  if (!timeout->is_number_unsigned() || *timeout == 0) {
    fail("the parameter 'timeout' is ", timeout->dump().substr(0, 40),
         ", expected a whole number of microseconds above 0");
  }
  return 1e-6 * timeout->get<double>();
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
  RequestJson found = parse_request_json(body.substr(0, header_size.value_or(body.size())), limits);
  const Json& json = found.json;
  std::string_view bytes = header_size ? body.substr(*header_size) : std::string_view();
  TensorRequest request;
  if (const Json* id = member(json, "id")) {
    if (!id->is_string()) fail("'id' is not text");
    request.id = id->get<std::string>();
    check_id(request.id);
  }
  check_parameters(json, {"alpha", "binary_data_output", "timeout", "quantiles", "above", "below",
                          "between", "probabilities", "flags"});
  request.alpha = numbers_in(json, "alpha");
  request.quantiles = texts_in(json, "quantiles");
  request.above = texts_in(json, "above");
  request.below = texts_in(json, "below");
  request.between = texts_in(json, "between");
  request.probabilities = flag_parameter(json, "probabilities", false);
  request.timeout = timeout_in(json);
  request.flags = flag_parameter(json, "flags", false);
  request.binary_outputs = flag_parameter(json, "binary_data_output", false);
  const Json* inputs = member(json, "inputs");
  if (inputs == nullptr || !inputs->is_array() || inputs->empty()) fail("there are no 'inputs'");
  if (inputs->size() > limits.inputs) {
    fail("found ", inputs->size(), " inputs, at most ", limits.inputs, " are taken");
  }
  std::set<std::string> names;
  for (const Json& one : *inputs) {
    const auto data = found.data.find(request.inputs.size());
    request.inputs.push_back(
        read_input(one, data == found.data.end() ? nullptr : &data->second, bytes, limits));
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
