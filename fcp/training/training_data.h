// The rows a network is trained on, checked and brought to the scale it trains at.
// Tested by tests/training/training_data_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/training/loss.h"
#include "fcp/training/tree_members.h"

namespace fcp {

// What a network does around its layers: scaled = (input − mean) / deviation before the first, and
// prediction = output · target after the last, in float32 both in training and in the exported
// file. Empty vectors: the network takes and gives numbers as they are.
struct NetworkScaling {
  std::vector<float> mean;
  std::vector<float> deviation;
  float target = 1;

  bool empty() const { return mean.empty(); }
};

struct TrainingData {
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t targets = 0;   // columns of y
  std::vector<float> x;  // [rows, inputs], scaled
  std::vector<float> y;  // [rows, targets], scaled; labels are not
  NetworkScaling scaling;
};

constexpr size_t kFewestTrainingRows = 10;

// x is [N, inputs]; y [N, K] or [N]. Labels, for cross-entropy, are whole numbers from 0 in one
// column. Rows and columns in messages count from 0.
TrainingData prepare_training_data(const Array& x, const Array& y, Loss loss, bool scale);

// The checks alone. Where `missing` is true, features may be NaN; where `constant` is, the target
// need not vary.
void check_training_rows(const Array& x, const Array& y, Loss loss, bool missing,
                         bool constant = false);

// The number of classes: `asked`, or where that is 0 the largest label + 1. An Error where a label
// is not below it.
int64_t count_classes(std::span<const float> labels, int64_t asked);

// Weights of the loss: none, or `expected` of them, all above 0; `what` each is of, for messages.
void check_loss_weights(std::span<const double> weights, int64_t expected, const char* what);

// The scale at which targets are learned: (y − mean) / deviation, column by column; of one target
// without negative values perhaps that of log(y + shift), whose answers are mapped back and kept a
// deviation around what was seen. Labels stay as they are. Tested by
// tests/training/holdout_error_test.cc and tests/training/training_data_test.cc.

struct TargetScaling {
  std::vector<double> mean;       // one per target
  std::vector<double> deviation;  // above 0; 1 where the target does not vary
  bool log = false;               // of log(y + shift)
  double shift = 0;
  double least = 0, most = 0;  // of log(y + shift)
};

TargetScaling fit_target_scaling(const Array& y);

// 0 of positive values, a tenth of their mean where some are 0; none where there are several
// targets, negative values or no positive one.
std::optional<double> log_shift(const Array& y);
TargetScaling fit_log_scaling(const Array& y, double shift);

// From the scale of learning to that of the targets, one of them.
double unscaled(const TargetScaling& scaling, double value);

// [N, K] in the scale of learning, computed in double precision.
torch::Tensor scale_targets(const TargetScaling& scaling, const Array& y);

// Weights of rows divided by their mean, [N] float; undefined where there are none.
torch::Tensor mean_one(const std::vector<double>& weights);

// How heavy the tails of a target are: the largest over targets of the deviation divided by the
// mean distance from the median. 1.25 for normal values, 1.44 for exponential ones; counts of rare
// events reach 3 to 6.
double tail_weight(const Array& y);
constexpr double kHeavyTail = 2;

// At which scale a target is learned: as it is, or by its logarithm, where noise grows with the
// value. Two short boosted members per scale, each on half of at most 6,000 rows, predict the other
// half. Intervals around these predictions, whose ends are the 5 % and 95 % quantiles of the
// residuals in ten bins of the prediction, are mapped back to the target, and the scale with the
// smaller interval score is taken; the logarithm where its score is smaller by 2 % or more. Bins
// let either scale adapt to noise that varies, as heads do later.
//
// Cost: that of four boosters of 150 rounds. Tested by tests/training/training_data_test.cc.

enum class TargetScale { kAuto, kIdentity, kLog };

// x [N, columns] as trees read it, y [N, 1]. False where the target has no logarithm, where rows
// are fewer than 200, and in a build without XGBoost.
// `weight` [N] of the rows; undefined: all 1.
bool prefers_log(const Array& x, const Array& y, const std::vector<CategoryColumns>& categories,
                 uint64_t seed, const torch::Tensor& weight = {});

// Targets that are far from 0 beside their spread, as 1e9 ± 3, where float32 numbers are 64 apart.
// Such a target is learned less an offset, subtracted in double precision, and the graph adds the
// offset to its answer as a double: Cast, Add. What is learned of residuals needs no offset. Heads
// and features stay float32.
//
// An offset is taken where one unit in the last place of the mean is more than a thousandth of the
// spread. It is the mean to a multiple of a power of two below the spread, so that whole numbers
// stay whole. Tested by tests/training/training_data_test.cc and tests/fit/fit_test.cc.

// Of each target, 0 where it needs none; empty where none does. y.exact tells; without it there is
// no offset.
std::vector<double> target_offsets(const Array& y);

// y − offset, as float32.
Array less_offsets(const Array& y, const std::vector<double>& offsets);

// Makes the graph answer y: its outputs `prediction`, `low` and `high`, and those of cross-fitting,
// become doubles, and the metadata kTargetOffsetKey (columns.h) says so.
void add_offsets(Graph& graph, const std::vector<double>& offsets);

}  // namespace fcp
