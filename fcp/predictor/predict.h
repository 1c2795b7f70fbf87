// Answers of a predictor for a stream of rows: regions to a sink, or how unusual each row's truth
// is; for intervals, sets of labels and images of pixels alike.
// Tested by tests/evaluate/evaluate_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/rows.h"
#include "fcp/discoveries.h"
#include "fcp/level.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/distribution_columns.h"
#include "fcp/predictor/predictor_core.h"
#include "fcp/predictor/region_writer.h"
#include "fcp/predictor/row_facts.h"

namespace fcp {

struct PredictOptions {
  std::vector<Level> levels = {Level(0.1)};
  RowFacts facts{};
  bool probabilities = false;                   // of the classes, beside sets of labels
  DistributionColumns* distribution = nullptr;  // whose columns are added to intervals
};

// Gives the regions of all rows to the writer, batch by batch, and closes it; returns the number of
// rows. An Error where there are none, or where an answer of the network is not a number.
size_t predict(const internal::PredictorCore& predictor, RowSource& source,
               const PredictOptions& options, const Context& context, RegionWriter& writer);

struct CheckOptions {
  Level level = Level(0.1);
  RowFacts facts{};
};

struct CheckedRow {
  size_t row = 0;                    // of the whole data, from 0
  std::span<const double> scores;    // one per side
  std::span<const double> p_values;  // one; with a radius for each target one for each
  std::vector<bool> in;              // likewise
};

struct CheckResult {
  size_t rows = 0;
  size_t in = 0;                     // with all targets
  std::vector<size_t> targets_in{};  // rows with each target in, where each has a radius
};

// What keeps the p-values of a predictor from being a test for outliers with a known rate of false
// ones (fcp/discoveries.h); nothing where rows of its own calibrate it, for all targets together.
std::optional<std::string> no_discoveries(const CalibrationArtifact& artifact);
// How these p-values depend on each other.
Dependence p_value_dependence(const CalibrationArtifact& artifact);

// Gives each row to `take`, in the order of the data. An Error names a row whose score is NaN; one
// where the artifact keeps the scores of some levels alone, from which no p-value follows.
CheckResult check(const internal::PredictorCore& predictor, RowSource& source,
                  const CheckOptions& options, const Context& context,
                  const std::function<void(const CheckedRow&)>& take);

}  // namespace fcp
