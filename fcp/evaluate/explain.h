// Why is an interval wide? Of each column of a table: how far the prediction and the length of the
// region change where its values are shuffled among the rows (permutation importance), and of the
// rows with the longest regions: by how much each column widens them, compared with the column at
// its training mean (occlusion).
//
//   importance of column c     mean over shuffles of |f(x with column c of another row) − f(x)|
//   widening of row x by c     length(x) − length(x with column c at its mean)
//
// Both ask the predictor about rows that need not exist: columns that depend on each other share
// what they say, and neither is a cause. Nothing is learned, and the guarantee is untouched.
//
// Cost: columns · (shuffles + 1) predictions of the rows. Reference: Breiman, Random Forests, 2001;
// Zeiler and Fergus, Visualizing and Understanding Convolutional Networks, 2014.
// Tested by tests/cli/test_predict.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fcp/data/rows.h"
#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

struct ExplainOptions {
  Level level = Level(0.1);
  RowFacts facts{};
  size_t rows = 1000;   // at most, from the beginning of the data
  size_t shuffles = 3;  // of each column
  size_t widest = 5;    // rows
  size_t reasons = 3;   // columns of a row
  bool finite = true;   // infinite regions are an Error; else their lengths change by NaN
};

// An Error where rows are not numbers in columns, or where there are fewer than two. Shuffles are
// drawn from the seed of the context.
Explanation explain(const internal::PredictorCore& predictor, RowSource& source,
                    const ExplainOptions& options, const Context& context);

}  // namespace fcp
