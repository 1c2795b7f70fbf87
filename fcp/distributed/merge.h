// All ranks' scores in ascending order on rank 0, for the artefact, which keeps them.
//
// Each rank sorts its own scores and sends them in chunks; rank 0 holds one chunk of every rank and
// merges. It takes the next chunk of a rank when the last is used up, and a rank waits until its
// chunk is taken: apart from what the sink keeps, rank 0 needs `buffer` bytes however many scores
// there are. Infinities and ties are numbers like others; zeros arrive as +0.0, so that the list is
// bit-equal for any number of ranks and any way the rows are shared.
//
// Cost: 8 bytes of traffic for each score that is not on rank 0; O(m log m) on a rank with m
// scores, O(N log R) on rank 0. Where only quantiles are wanted, fcp/distributed/selection.h is
// cheaper by far. Tested by tests/distributed/merge_test.cc and tests/distributed/test_mpirun.py.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "fcp/distributed/communicator.h"

namespace fcp {

struct MergeOptions {
  size_t first_row = 0;              // of this rank's scores, for the message about a NaN
  size_t buffer = size_t{64} << 20;  // bytes on rank 0, shared by all ranks' chunks
};

// Calls `sink` on rank 0 with consecutive runs of the ascending list. On a rank with a NaN, an
// Error that names the rank and the row, before anything is sent.
void merge_sorted(Communicator& ranks, std::vector<double> scores,
                  const std::function<void(std::span<const double>)>& sink,
                  const MergeOptions& options = {});

// The whole list on rank 0; empty on the others.
std::vector<double> gather_sorted(Communicator& ranks, std::vector<double> scores,
                                  const MergeOptions& options = {});

}  // namespace fcp
