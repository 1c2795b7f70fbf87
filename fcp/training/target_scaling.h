// The scale at which targets are learned: (y − mean) / deviation, column by column; of one target
// without negative values perhaps that of log(y + shift), whose answers are mapped back and kept a
// deviation around what was seen. Labels stay as they are. Tested by
// tests/training/holdout_error_test.cc and tests/training/target_scale_test.cc.
#pragma once

#include <optional>
#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"

namespace fcp {

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

}  // namespace fcp
