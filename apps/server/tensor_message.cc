#include "apps/server/tensor_message.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {

// From a TensorResponse to the body of an answer.

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson data_json(const ResponseTensor& tensor) {
  OrderedJson data = OrderedJson::array();
  if (const auto* numbers = std::get_if<std::vector<float>>(&tensor.data)) {
    for (const float value : *numbers) {
      if (std::isinf(value)) {
        data.push_back(value > 0 ? "inf" : "-inf");
      } else {
        data.push_back(value);
      }
    }
  } else if (const auto* flags = std::get_if<std::vector<uint8_t>>(&tensor.data)) {
    for (const uint8_t value : *flags) data.push_back(value != 0);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&tensor.data)) {
    data = *integers;
  } else {
    data = std::get<std::vector<std::string>>(tensor.data);
  }
  return data;
}

}  // namespace

const char* datatype_of(const ResponseTensor& tensor) {
  constexpr const char* kNames[] = {"FP32", "INT64", "BOOL", "BYTES"};
  return kNames[tensor.data.index()];
}

std::vector<ResponseTensor> asked_tensors(const std::vector<ResponseTensor>& all,
                                          const TensorRequest& request) {
  std::vector<ResponseTensor> chosen;
  if (!request.outputs) {
    chosen = all;
    for (ResponseTensor& one : chosen) one.binary = request.binary_outputs;
    return chosen;
  }
  for (const RequestedOutput& wanted : *request.outputs) {
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const ResponseTensor& one) { return one.name == wanted.name; });
    if (found == all.end()) fail("there is no output '", wanted.name.substr(0, 80), "'");
    chosen.push_back(*found);
    chosen.back().binary = wanted.binary;
  }
  return chosen;
}

TensorText tensor_response_text(const TensorResponse& response) {
  OrderedJson json = {{"model_name", response.model}, {"model_version", response.version}};
  if (!response.id.empty()) json["id"] = response.id;
  std::visit([&](const auto& level) { json["parameters"] = {{"level", level}}; }, response.level);
  json["outputs"] = OrderedJson::array();
  std::string bytes;
  bool binary = false;
  for (const ResponseTensor& output : response.outputs) {
    OrderedJson one = {
        {"name", output.name}, {"datatype", datatype_of(output)}, {"shape", output.shape}};
    if (output.binary) {
      const std::string data = data_bytes(output);
      one["parameters"] = {{"binary_data_size", data.size()}};
      bytes += data;
      binary = true;
    } else {
      one["data"] = data_json(output);
    }
    json["outputs"].push_back(std::move(one));
  }
  const std::string head = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  if (!binary) return {head, std::nullopt};
  return {head + bytes, head.size()};
}

namespace {

static_assert(std::endian::native == std::endian::little, "tensors are sent as they lie in memory");

template <typename Number>
std::vector<double> numbers_in(std::string_view bytes, size_t count, const std::string& where) {
  if (bytes.size() != count * sizeof(Number)) {
    fail(where, ": found ", bytes.size(), " bytes, its shape needs ", count * sizeof(Number));
  }
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    Number value;
    std::memcpy(&value, bytes.data() + i * sizeof(Number), sizeof(Number));
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

std::vector<std::string> texts_in(std::string_view bytes, size_t count, const std::string& where) {
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    uint32_t size = 0;
    if (bytes.size() < sizeof size) fail(where, ": its bytes end in the middle of a length");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) fail(where, ": its bytes end in the middle of a text");
    texts.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (texts.size() > count) break;
  }
  if (texts.size() != count) fail(where, ": found other than the ", count, " texts of its shape");
  return texts;
}

template <typename Number>
void append_numbers(const std::vector<Number>& numbers, std::string& out) {
  out.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
}

}  // namespace

decltype(NamedValues::values) read_binary_data(std::string_view bytes, const std::string& type,
                                               size_t count, const std::string& where) {
  if (type == "BYTES") return texts_in(bytes, count, where);
  const auto read = [&]<typename Number>(Number) {
    return numbers_in<Number>(bytes, count, where);
  };
  if (type == "FP32") return read(float{});
  if (type == "FP64") return read(double{});
  if (type == "INT64") return read(int64_t{});
  if (type == "INT32") return read(int32_t{});
  if (type == "INT16") return read(int16_t{});
  if (type == "INT8") return read(int8_t{});
  if (type == "UINT64") return read(uint64_t{});
  if (type == "UINT32") return read(uint32_t{});
  if (type == "UINT16") return read(uint16_t{});
  if (type == "UINT8" || type == "BOOL") return read(uint8_t{});
  fail(where, ": the datatype '", type, "' is not understood");
}

std::string data_bytes(const ResponseTensor& tensor) {
  std::string bytes;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&tensor.data)) {
    for (const std::string& text : *texts) {
      const auto size = static_cast<uint32_t>(text.size());
      bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
      bytes += text;
    }
  } else if (const auto* numbers = std::get_if<std::vector<float>>(&tensor.data)) {
    append_numbers(*numbers, bytes);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&tensor.data)) {
    append_numbers(*integers, bytes);
  } else {
    append_numbers(std::get<std::vector<uint8_t>>(tensor.data), bytes);
  }
  return bytes;
}

}  // namespace fcp
