// The exact k-th smallest of scores that are spread over ranks, without bringing them together.
//
// Idea: the ranks agree on an interval of values that holds the answer and shrink it by counting
// (fcp/distributed/refinement.h). What travels is counts, never scores, so the traffic does not
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

}  // namespace fcp
