// Truths as a client sends them, and what became of each.
//
//   {"feedback": [{"id": "7", "truth": 3.5}, {"id": "8", "row": 2, "truth": [1, 2]},
//                 {"id": "9", "truth": "cat"}]}
//
// `row` counts the rows of the request from 0, which it is where it is not said. Labels are numbers
// or names of classes.
// Tested by tests/server/tensor_message_test.cc and fuzz/fuzz_request.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

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
