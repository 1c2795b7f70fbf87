// From a TensorResponse to the body of an answer.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/server/tensor_bytes.h"
#include "apps/server/tensor_message.h"

namespace fcp {
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

}  // namespace fcp
