// Labels by their logits, the largest first and, of equal ones, the lower label first, as keys that
// sort by themselves: a score that needs only the first few ranks sorts no more than those.
// Tested by tests/methods/scores/labels_test.cc and label_law_test.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fcp {

// Ascending keys are descending logits; no logit is NaN.
inline uint64_t rank_key(float logit, size_t label) {
  constexpr uint32_t kSignBit = uint32_t{1} << 31;
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);  // −0 is 0
  const uint32_t ascending = (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
  return uint64_t{~ascending} << 32 | label;
}

inline size_t ranked_label(uint64_t key) { return key & 0xffffffffu; }

// The keys of all labels, not yet in order.
inline void begin_ranks(std::span<const float> logits, std::vector<uint64_t>& keys) {
  keys.resize(logits.size());
  for (size_t k = 0; k < keys.size(); ++k) keys[k] = rank_key(logits[k], k);
}

// The rank of one label, from 1: no sort is needed.
inline int64_t rank_of(std::span<const float> logits, size_t label) {
  const float own = logits[label];
  int64_t rank = 1;
  for (size_t k = 0; k < logits.size(); ++k) {
    rank += k < label ? logits[k] >= own : logits[k] > own;
  }
  return rank;
}

}  // namespace fcp
