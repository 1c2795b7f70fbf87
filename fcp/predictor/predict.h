// Band detection: how usual the truth of each row is. Its score, its p-value, and whether it is
// within the radius of a level; for intervals, sets of labels and images of pixels alike.
// Tested by tests/pipeline/evaluate_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/row_facts.h"

namespace fcp {

struct CheckOptions {
  Level level = Level(0.1);
  RowFacts facts{};
  uint64_t first = 0;  // the place of the first row, by which localized draws
};

struct CheckedRow {
  size_t row = 0;                  // of the whole data, from 0
  std::span<const double> scores;  // one per side
  double p_value = 0;
  bool in = false;
};

struct CheckResult {
  size_t rows = 0;
  size_t in = 0;
};

// Gives each row to `take`, in the order of the data. An Error names a row whose score is NaN; one
// where the artifact keeps the scores of some levels alone, from which no p-value follows.
CheckResult check(const CalibrationArtifact& artifact, RowSource& source,
                  const CheckOptions& options, const Context& context,
                  const std::function<void(const CheckedRow&)>& take);

}  // namespace fcp
