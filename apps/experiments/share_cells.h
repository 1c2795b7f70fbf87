// The cells of experiments shared among ranks: every R-th cell is this rank's.
#pragma once

#include <vector>

#include "fcp/distributed/communicator.h"

#include "apps/experiments/cell_runner.h"

namespace fcp {

// The results of all, in the order of the tasks, on rank 0; nothing on the others.
std::vector<CellResult> share_cells(const std::vector<CellTask>& tasks, const RunOptions& run,
                                    Communicator& ranks);

}  // namespace fcp
