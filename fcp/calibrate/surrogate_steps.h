// Choosing the number of steps of a surrogate search. Unless the paper's own habits are asked for,
// it looks only at rows that are then left out of the calibration, so the guarantee stays whole.
// Tested by tests/calibrate/surrogate_steps_test.cc.
#pragma once

#include <memory>
#include <vector>

#include <torch/types.h>

#include "fcp/level.h"
#include "fcp/methods/method.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// The surrogate's number of steps as the paper chooses it: the first M for which the bands at the
// radius that the calibration rows give cover more than 1 − α of the validation rows. For the
// paper's feature_cqr, with a radius per side. For the guarantee both folds must be rows that are
// then left out of calibration.
struct StepsChoice {
  int steps = 0;
  std::vector<double> coverage;  // of the validation rows after 1, 2, … steps
};

struct StepsFolds {
  torch::Tensor calibration_features, calibration_truth;
  torch::Tensor validation_features, validation_truth;
  // Where the calibration rows are too few for the level: their largest distance instead of +∞,
  // with which the first step would do.
  bool clamp = false;
};

// An Error where none of `most` steps reaches the level; it says the best coverage and what to try.
StepsChoice choose_steps(std::shared_ptr<const Network> head, const ScoreOptions& score,
                         const StepsFolds& rows, const Level& level, int most = 200);

}  // namespace fcp
