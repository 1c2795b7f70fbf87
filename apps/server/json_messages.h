// The JSON of an infer request: the `data` of its inputs apart, as numbers or texts, and all else
// as the JSON it is. Numbers are read as they come and never stand in memory as JSON, which would
// take many times their room.
// Tested by tests/server/tensor_message_test.cc and fuzz/fuzz_request.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
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

// Truths as a client sends them, and what became of each.
//
//   {"feedback": [{"id": "7", "truth": 3.5}, {"id": "8", "row": 2, "truth": [1, 2]},
//                 {"id": "9", "truth": "cat"}]}
//
// `row` counts the rows of the request from 0, which it is where it is not said. Labels are numbers
// or names of classes.
// Tested by tests/server/tensor_message_test.cc and fuzz/fuzz_request.cc.

struct TruthReport {
  std::string id;
  int64_t row = 0;
  std::vector<float> truth;
};

struct TruthResult {
  std::string status;      // "accepted", "duplicate", "unknown" or "wrong"
  std::string error = {};  // more about it
  // NaN where the version that predicted is served no longer: the answer tells only whether it
  // covered the truth.
  double p_value = std::numeric_limits<double>::quiet_NaN();
  bool covered = false;
};

// An Error says what is wrong in one line; more than `most` truths are.
std::vector<TruthReport> parse_feedback(std::string_view body,
                                        const std::vector<std::string>& class_names, size_t most);

// {"accepted": 2, "results": [{"id": "7", "row": 0, "status": "accepted", "p_value": 0.3,
// "covered": true}, …]}; no p-value where only the answer is known
std::string feedback_text(const std::vector<TruthReport>& told,
                          const std::vector<TruthResult>& results);

}  // namespace fcp
