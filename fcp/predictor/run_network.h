// A network's outputs for rows from one file per input, streamed to files.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fcp/data/rows.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/context.h"

namespace fcp {

// `sources` has one entry per input of the network; `files` maps names of outputs to .npy or CSV
// files, and outputs that it does not name are not written. Returns the number of rows;
// nothing is written where it is 0. Fails where the sources differ in their number of rows, and
// where an answer is NaN.
size_t run_network(const Network& network, const std::vector<std::unique_ptr<RowSource>>& sources,
                   const std::map<std::string, std::string>& files, const Context& context);

}  // namespace fcp
