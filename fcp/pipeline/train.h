// Training on a stream of rows.
#pragma once

#include "fcp/data/rows.h"
#include "fcp/pipeline/context.h"
#include "fcp/training/train.h"

namespace fcp {

// Trains on all rows; the graph carries how its columns are read, and the names of its targets.
TrainResult train_rows(RowSource& source, const TrainOptions& options, const Context& context);

}  // namespace fcp
