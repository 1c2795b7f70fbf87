// The JSON of an infer request: the `data` of its inputs apart, as numbers or texts, and all else
// as the JSON it is. Numbers are read as they come and never stand in memory as JSON, which would
// take many times their room.
// Tested by tests/server/tensor_message_test.cc and fuzz/fuzz_request.cc.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/server/tensor_message.h"

namespace fcp {

// The leaves of nested lists, in their order.
struct JsonData {
  size_t count = 0;
  // One per leaf, where the datatype did not stand before the data or is one of numbers, or BYTES.
  std::vector<double> numbers{};
  std::vector<std::string> texts{};
  // A leaf that is no number, and one that is no text; empty: there is none.
  std::string no_number{}, no_text{};
};

struct RequestJson {
  nlohmann::json json;              // an object
  std::map<size_t, JsonData> data;  // by the input's place in json["inputs"]
};

// An Error where this is no JSON object, is nested too deep, has more values than the limits allow
// or has a key twice.
RequestJson parse_request_json(std::string_view text, const TensorLimits& limits);

}  // namespace fcp
