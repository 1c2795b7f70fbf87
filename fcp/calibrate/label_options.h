// Choosing the options of a score of labels: the temperature of its softmax and the number of steps
// of feature_sampled; rank_term.h chooses what a rank costs. All of it looks only at rows that are
// then left out of the calibration, so the guarantee stays whole.
//
// Each function takes the options so far, the head, and selection rows: features [N, …] and labels
// [N, 1]. It gives back the options with its choice put in.
// Tested by tests/calibrate/label_options_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "fcp/level.h"
#include "fcp/methods/method.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

struct LabelledFeatures {
  torch::Tensor features, labels;
};

// The temperature T, between 1/100 and 100, for which softmax(logits / T) has the least mean
// cross-entropy: convex in 1/T, found by Newton's method with bisection as its safety net.
// Reference: Guo, Pleiss, Sun, Weinberger, On Calibration of Modern Neural Networks, 2017.
double best_temperature(const torch::Tensor& logits, const torch::Tensor& labels);
ScoreOptions choose_temperature(ScoreOptions options, const std::shared_ptr<const Network>& head,
                                const LabelledFeatures& rows);

// The number of steps of feature_sampled as the paper chooses it: the first for which sets at the
// radius of one half of the rows cover more than 1 − α of the other half. An Error where none of
// `most` does; it says the best coverage.
ScoreOptions choose_sampled_steps(ScoreOptions options, const std::shared_ptr<const Network>& head,
                                  const LabelledFeatures& rows, const Level& level, int most = 200);

}  // namespace fcp
