// The answer of one row, as its client was given it and as it is kept beside the prediction: by it
// a truth is judged when the version that predicted is served no longer, and a request that comes
// again is answered as before.
// Tested by tests/server/stored_answer_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

struct StoredAnswer {
  int64_t version = 0;                  // of the file that predicted
  std::vector<double> levels{};         // in the order of the request
  int64_t label = 0;                    // of sets
  std::vector<float> prediction{};      // of intervals, one per output
  std::vector<float> lower{}, upper{};  // level by level, one per output
  std::vector<uint8_t> members{};       // level by level, one per class
};

// Numbers as this machine has them, as in the rest of the store.
std::string bytes_of(const StoredAnswer& answer);
// An Error where the bytes are not such an answer.
StoredAnswer read_answer(std::string_view bytes);

// What an answer alone tells about its truth: neither a score nor a p-value. Of several levels the
// one nearest to `wanted` counts; of a union of intervals, its ends.
struct AnswerJudgement {
  bool covered = false;
  double size = 0;
  double alpha = 0;  // the level that counts
};
// An Error where the truth has other outputs, or is none of the labels.
AnswerJudgement judge_by_answer(const StoredAnswer& answer, const std::vector<float>& truth,
                                double wanted);

}  // namespace fcp
