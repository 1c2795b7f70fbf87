// The exact k-th smallest of scores that are spread over ranks, without bringing them together.
//
// Idea: the ranks agree on an interval of values that holds the answer and shrink it by counting
// (fcp/distributed/refinement.h). What travels is counts, never scores, so the traffic does not
// depend on the number of scores:
//
//   rounds  = 2 + ⌈w / b⌉ ≤ 8      one sum of row numbers, one minimum, then histograms; b = 11
//   payload ≤ (5 · 2^11 + 2^9) · 8 bytes = 84 KiB for one k, 68 KiB for each more; an all-reduce
//             moves twice that per rank and takes 2 log2 R steps
//   work    = one pass over the scores of a rank, then passes over those that are still candidates;
//             8 bytes of memory for each, or none besides the scores where they are kept as keys
//
// Nothing is assumed of the scores or of how they are spread: ties, ±∞ and empty ranks included.
// All ranks get the same answer, bit-equal to the serial one for any number of ranks; a zero is
// +0.0.
//
// Reference: bucket selection; Alabi, Blanchard, Gordon, Steinbach, Fast k-selection algorithms for
// graphics processing units, 2012, here with counts summed over ranks. docs/scale.md has the costs.
// Tested by tests/distributed/selection_test.cc and tests/distributed/test_mpirun.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fcp/distributed/communicator.h"
#include "fcp/level.h"

namespace fcp {

struct RankSelectionOptions {
  size_t first_row = 0;  // of this rank's scores among all, for the message about a NaN
  int bits = 11;         // a round resolves this many of 64: 2^bits counts for each interval
};

// An Error that names this rank and the row of the first NaN; rows are counted from `first_row`.
void check_scores(const Communicator& ranks, std::span<const double> scores, size_t first_row);

// The k-th smallest of all ranks' scores for each k, counted from 1. `ks` is the same on all ranks.
// An Error for a k that does not exist, and on a rank that has a NaN.
std::vector<double> distributed_select(Communicator& ranks, std::span<const double> scores,
                                       std::span<const uint64_t> ks,
                                       const RankSelectionOptions& options = {});

// The same of keys (fcp/distributed/refinement.h), for whoever keeps nothing else of the scores:
// they are used up, and no second list is made.
std::vector<double> distributed_select_keys(Communicator& ranks, std::vector<uint64_t> keys,
                                            std::span<const uint64_t> ks,
                                            const RankSelectionOptions& options = {});

// conformal_quantile of all ranks' scores together, for each level; +∞ where they are too few.
std::vector<double> distributed_quantiles(Communicator& ranks, std::span<const double> scores,
                                          std::span<const Level> levels,
                                          const RankSelectionOptions& options = {});

}  // namespace fcp
