// The scale at which targets are learned: (y − mean) / deviation, column by column. Labels stay as
// they are. Tested by tests/training/holdout_error_test.cc.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"

namespace fcp {

struct TargetScaling {
  std::vector<double> mean;       // one per target
  std::vector<double> deviation;  // above 0; 1 where the target does not vary
};

TargetScaling fit_target_scaling(const Array& y);

// [N, K] in the scale of learning, computed in double precision.
torch::Tensor scale_targets(const TargetScaling& scaling, const Array& y);

// How heavy the tails of a target are: the largest over targets of the deviation divided by the
// mean distance from the median. 1.25 for normal values, 1.44 for exponential ones; counts of rare
// events reach 3 to 6.
double tail_weight(const Array& y);
constexpr double kHeavyTail = 2;

}  // namespace fcp
