// Regions of a calibrated predictor for a stream of rows: intervals, sets of labels, and images of
// pixels alike.
// Tested by tests/pipeline/evaluate_test.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/region_writer.h"
#include "fcp/pipeline/row_facts.h"

namespace fcp {

struct PredictOptions {
  Level level = Level(0.1);
  RowFacts facts{};
  std::vector<Level> further{};  // levels whose regions the writer gets too, after those of `level`
};

// Gives the regions of all rows to the writer, batch by batch, and closes it; returns the number of
// rows. An Error where there are none, or where an answer of the network is not a number.
size_t predict(const CalibrationArtifact& artifact, RowSource& source,
               const PredictOptions& options, const Context& context, RegionWriter& writer);

}  // namespace fcp
