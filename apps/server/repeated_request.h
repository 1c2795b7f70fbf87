// Requests by the answers that were kept: what is kept of each row, and the answer of a request
// that comes again under its id. A client that has lost an answer may ask again, and nothing is
// counted twice.
// Tested by tests/server/repeated_request_test.cc and tests/cli/test_serve_state.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/level.h"

#include "apps/server/feedback_store.h"
#include "apps/server/tensor_message.h"

namespace fcp {

// What a client is told: all tensors of the answer, as ServedModel::all_tensors has them.
struct GivenAnswer {
  std::vector<ResponseTensor> tensors;
  std::vector<Level> levels;
  std::optional<Level> adapted{};  // the level that followed the truths, where it did
  int64_t version = 0;             // of the file that predicted
};

// Rows by their regions at the first level.
struct RegionCounts {
  size_t unbounded = 0;  // an interval with an infinite end
  size_t empty = 0;      // a set without labels, or an interval without numbers
};
RegionCounts counts_of(const GivenAnswer& given);

// Row by row, in the bytes of a StoredAnswer.
std::vector<std::string> kept_answers(const GivenAnswer& given);

// `kept`: all that is kept under the id. None where the id is that of another request: other rows
// than x, or other levels than `named`; empty: it names none.
std::optional<GivenAnswer> repeated_answer(const std::vector<WaitingPrediction>& kept,
                                           std::span<const float> x, size_t rows,
                                           const std::vector<Level>& named);

}  // namespace fcp
