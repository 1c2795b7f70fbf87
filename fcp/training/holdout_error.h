// How far a network is off on rows it has not seen, in the target's unit, beside what is known
// without looking at the features. Tested by tests/training/holdout_error_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/training/ensemble_fit.h"
#include "fcp/training/loss.h"

namespace fcp {

struct HoldoutError {
  int64_t rows = 0;
  // mse: one per target.
  std::vector<double> rmse;
  std::vector<double> mae;
  std::vector<double> deviation;  // the root mean square error of the rows' own mean
  // quantile: share of truths between low and high, and the mean distance of the two.
  double coverage = 0;
  double length = 0;
  // cross-entropy
  double accuracy = 0;
  double majority = 0;  // the share of the most frequent label
};

// predictions [n, outputs] as the graph gives them (quantile: all low, then all high), y [n, K].
// `weight` [n] of the rows; undefined: all 1.
HoldoutError holdout_error(Loss loss, const torch::Tensor& predictions, const torch::Tensor& y,
                           const torch::Tensor& weight = {});

// What a user should hear: a network that is no better than the mean (or the majority), or one that
// was still improving when the epochs ended.
// `names` of the targets, where they are known.
std::vector<std::string> training_warnings(const HoldoutError& error,
                                           std::span<const FitCurve> curves, int64_t epochs,
                                           const std::vector<std::string>& names = {});

// The 90 % quantile of |errors| [n], twice: about the length of an interval around the predictions.
double residual_length(const torch::Tensor& errors, const torch::Tensor& weight = {});

}  // namespace fcp
