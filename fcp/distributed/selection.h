// The exact k-th smallest of scores that are spread over ranks, without bringing them together.
//
// Idea: the ranks agree on an interval of values that holds the answer and shrink it by counting
//. What travels is counts, never scores, so the traffic does not
// depend on the number of scores:
//
//   rounds  = 2 + ⌈w / b⌉ ≤ 8      one sum of row numbers, one minimum, then histograms; b = 11
//   payload ≤ (5 · 2^11 + 2^9) · 8 bytes = 84 KiB for one k, 68 KiB for each more; an all-reduce
//             moves twice that per rank and takes 2 log2 R steps
//   work    = one pass over the keys of a rank, then passes over those that are still candidates
//
// Nothing is assumed of the scores or of how they are spread: ties, ±∞ and empty ranks included.
// All ranks get the same answer, bit-equal to the serial one for any number of ranks; a zero is
// +0.0.
//
// Reference: bucket selection; Alabi, Blanchard, Gordon, Steinbach, Fast k-selection algorithms for
// graphics processing units, 2012, here with counts summed over ranks. docs/scale.md has the costs.
// Tested by tests/distributed/selection_test.cc and tests/distributed/test_mpirun.py.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fcp/distributed/communicator.h"

namespace fcp {

// The k-th smallest of all ranks' scores for each k, counted from 1. `ks` is the same on all ranks;
// an Error for a k that does not exist. Scores are given as keys (ordered_key), which are used up.
// A round resolves `bits` of 64, from 1 to 16, by 2^bits counts for each interval.
std::vector<double> distributed_select(Communicator& ranks, std::vector<uint64_t> keys,
                                       std::span<const uint64_t> ks, int bits = 11);

// The part of distributed selection that all ranks do alike: intervals of keys that shrink.
//
// A double that is not NaN becomes a 64-bit key in the same order (ordered_key). The k-th smallest
// key is somewhere between the smallest and the largest, an interval of less than 2^w keys. A round
// cuts it into 2^b equal buckets; the numbers of keys in them say in which bucket the k-th smallest
// lies and how many are before it, and that bucket of 2^(w−b) keys is the next interval:
//
//   bucket j with  C_{j−1} < k ≤ C_j,   C_j = c_0 + … + c_j;      k ← k − C_{j−1}
//
// At w = 0 the interval is the key. So there are ⌈w / b⌉ rounds, whatever the numbers are: at most
// 6 with b = 11. Several k at once share the rounds, and a bucket count serves all k whose interval
// it belongs to: intervals of one round are equally wide and aligned, so two are equal or disjoint.
//
// Tested by tests/distributed/selection_test.cc.

constexpr uint64_t kSignBit = uint64_t{1} << 63;

// x < y ⟺ ordered_key(x) < ordered_key(y), for all doubles that are not NaN; −0.0 becomes 0.0, so
// that equal numbers have equal keys.
inline uint64_t ordered_key(double x) {
  const auto bits = std::bit_cast<uint64_t>(x + 0.0);
  return bits & kSignBit ? ~bits : bits | kSignBit;
}

inline double from_ordered_key(uint64_t key) {
  return std::bit_cast<double>(key & kSignBit ? key & ~kSignBit : ~key);
}

class Refinement {
 public:
  // Among keys lowest … highest. `ks` count from 1; bits from 1 to 16 are resolved by a round.
  Refinement(uint64_t lowest, uint64_t highest, std::span<const uint64_t> ks, int bits);

  bool done() const { return width_ == 0; }

  // Of this round: the distinct intervals, and the buckets of each.
  size_t intervals() const { return starts_.size(); }
  size_t buckets() const { return size_t{1} << round_bits(); }
  const std::vector<uint64_t>& starts() const { return starts_; }  // ascending
  int width() const { return width_; }                             // interval: 2^width keys
  int bucket_width() const { return width_ - round_bits(); }

  // Counts the keys that lie in an interval into counts[interval · buckets() + bucket] and drops
  // all others: no later round asks for them.
  void count(std::vector<uint64_t>& keys, std::span<uint64_t> counts) const;

  // Takes the sums of those counts over all ranks.
  void narrow(std::span<const uint64_t> counts);

  // When done: the key for each k, in the order of `ks`.
  std::vector<uint64_t> found() const;

 private:
  struct Query {
    uint64_t k = 0;  // within its interval, from 1
    size_t place = 0;
    size_t interval = 0;
  };

  int round_bits() const { return width_ < bits_ ? width_ : bits_; }

  std::vector<Query> queries_;  // ascending in k
  std::vector<uint64_t> starts_;
  int bits_;
  int width_;
};

}  // namespace fcp
