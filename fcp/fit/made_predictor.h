// From a table that is split to a calibrated predictor: a network is trained on one part and
// calibrated on another, or both on all rows but those of the test (fcp/training/cross_fit.h).
// Tested by tests/fit/fit_test.cc.
#pragma once

#include <vector>

#include "fcp/fit/fit.h"
#include "fcp/predictor/row_facts.h"

namespace fcp {

// What a predictor is made of.
struct MadeFrom {
  const RowSource& source;
  const Rows& all;
  const RowFacts& facts;  // of all rows
  const TableSplit& split;
  const std::vector<double>& weights;  // of all rows in training; empty: all are alike
};

inline constexpr size_t kUnknownClasses = 1;  // labels of an array have no names to count

// Whether the rows that train calibrate as well; classes: 0 of numbers. An OptionError where that
// is asked for and cannot be.
bool crosses(const FitRequest& options, size_t targets, size_t classes, size_t rows);

// Each leaves its result in `result.calibrated` and `result.holdout`.
MadeRows train_and_calibrate(const MadeFrom& from, TabularOptions train, const DataOptions& data,
                             const FitRequest& options, const Context& context, FitOutcome& result);
void calibrate_crossed(const MadeFrom& from, TabularOptions train, const DataOptions& data,
                       const FitRequest& options, const Context& context, FitOutcome& result);

}  // namespace fcp
