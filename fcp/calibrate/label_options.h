// Choosing the options of a score of labels: the temperature of its softmax, the rank term of raps
// and feature_margin, the number of steps of feature_sampled. All of it looks only at rows that are
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

// The rank term that gives the smallest sets at the radius of the rows themselves, as the authors
// of raps choose it: the ranks up to the 1 − α quantile of the rank of the truth are free (k_reg),
// and the weight is the best of 0.001, 0.01, 0.1, 0.2 and 0.5 (raps, λ) or of shares of the radius
// without a rank term (feature_margin), from 0 to 0.3: beyond, sets hardly become smaller, but
// those of hard rows, which need to be large, are cut off at k_reg.
ScoreOptions choose_rank_term(ScoreOptions options, const std::shared_ptr<const Network>& head,
                              const LabelledFeatures& rows, const Level& level);

// The number of steps of feature_sampled as the paper chooses it: the first for which sets at the
// radius of one half of the rows cover more than 1 − α of the other half. An Error where none of
// `most` does; it says the best coverage.
ScoreOptions choose_sampled_steps(ScoreOptions options, const std::shared_ptr<const Network>& head,
                                  const LabelledFeatures& rows, const Level& level, int most = 200);

}  // namespace fcp
