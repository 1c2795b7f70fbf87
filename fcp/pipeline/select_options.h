// Settles what calibration must not settle itself: the cut, the floor, the surrogate's number of
// steps, the bandwidth of localized and the likelihood ratio of weighted calibration. All of it
// looks at a slice of the rows only, which is then left out of calibration.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/data/rows.h"
#include "fcp/network/graph.h"
#include "fcp/pipeline/calibrate.h"

namespace fcp {

// Rows by number: which ones are set aside for choices. Empty: none.
using RowMask = std::vector<bool>;

// Fills in what `settings` leaves open, and `ratio` where it is to be estimated; returns the rows
// this looked at. What is chosen is told on stderr.
RowMask settle(const Graph& network, RowSource& source, const Context& context,
               CalibrateSettings& settings, DensityRatio& ratio);

}  // namespace fcp
