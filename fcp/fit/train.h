// Training on a stream of rows, or on a set of labelled images.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "fcp/data/images/segmentation.h"
#include "fcp/data/rows.h"
#include "fcp/fit/fit.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"
#include "fcp/training/cross_fit.h"
#include "fcp/training/segmenter.h"
#include "fcp/training/tabular.h"
#include "fcp/training/train.h"

namespace fcp {

// All rows from the beginning, targets unrounded where the source has them so.
Rows read_exact_targets(RowSource& source);

// Trains on all rows by the paper's recipe; the graph carries how its columns are read, the names
// of its targets, and what tells the rows that it has seen (fcp/data/row_digest.h).
TrainResult train_rows(RowSource& source, const TrainOptions& options, const Context& context);

// The same by the default recipe. A regression gets heads on its features as well
// (fcp/training/heads_graph.h), where they are wanted and the rows are enough. Warnings go to the
// observer and stay in the result.
TabularResult train_table(RowSource& source, const TabularOptions& options, bool heads,
                          const Context& context);

// By the default recipe, cross-fitted so that the rows that train calibrate as well
// (fcp/training/cross_fit.h).
CrossFit train_crossed_table(RowSource& source, const TabularOptions& options, int64_t folds,
                             const Context& context);

// Halves the layers where rows are few, of which half the usual widths learn as much.
void narrow_layers(size_t rows, TabularOptions& options);

// "5 networks and boosted trees of weight 0.6, of the target's logarithm": what an ensemble is made
// of; `share`: of the trees.
std::string ensemble_text(int64_t networks, const std::vector<double>& share, bool log);

// Trains the small segmenter (fcp/training/segmenter.h); the images are kept in memory. `size`:
// height and width to which images and labels are resized; 0: as they are, and then all of the same
// size. An Error names an image that is not.
SegmenterResult train_segmentation(const SegmentationSet& set, const SegmenterOptions& options,
                                   std::array<int, 2> size, const Context& context);

// From a table that is split to a calibrated predictor: a network is trained on one part and
// calibrated on another, or both on all rows but those of the test (fcp/training/cross_fit.h).
// Tested by tests/fit/fit_test.cc.

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
