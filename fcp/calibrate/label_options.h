// Choosing the options of a score of labels: the temperature of its softmax and the number of steps
// of feature_sampled; and, below, what a rank costs. All of it looks only at rows that
// are then left out of the calibration, so the guarantee stays whole.
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

// Choosing what each rank costs in a score of labels: the rank term of raps, saps and
// feature_margin, on rows that are then left out of the calibration.
//
// Of raps and saps the weight λ is the best of nine from 0.001 to 0.5 and the free ranks (k_reg of
// raps) the best of a few up to the 1 − α quantile of the rank of the truth. What is best has the
// least mean size of sets on one half of the rows at the radius of the other, over ten random
// halvings. The rows' own radius, by which the authors of raps choose, flatters a term that cuts
// sets off at just the rank that holds 1 − α of these rows: on others sets are then a half larger.
// Randomised scores are drawn anew for each halving.
//
// With `cooler`, the temperature is chosen along: the score's own or a part of it down to a half.
// Probabilities that are surer than they are true make sets of raps and saps smaller, because their
// sums leave room for the term alone (Xi et al., Does confidence calibration improve conformal
// prediction?, 2024).
//
// Of feature_margin the weight is a share of the radius without a term, from 0 to 0.3, at the
// radius of the rows themselves: beyond, sets hardly become smaller, but those of hard rows, which
// need to be large, are cut off.
//
// Cost: at most 2,000 rows; of raps and saps a sort of their labels for each temperature and draw,
// and log C comparisons per row and candidate.
// Reference: Angelopoulos, Bates, Malik, Jordan, Uncertainty Sets for Image Classifiers using
// Conformal Prediction, 2021. Tested by tests/calibrate/label_options_test.cc.

// The options with the chosen term, and with `cooler` the chosen temperature, put in. An Error
// where the score has no rank term.
ScoreOptions choose_rank_term(ScoreOptions options, const std::shared_ptr<const Network>& head,
                              const LabelledFeatures& rows, const Level& level,
                              bool cooler = false);

}  // namespace fcp
