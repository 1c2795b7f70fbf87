// Scores on one seed of one of the paper's regression sets: the network, the number of steps or the
// cut that a score has to choose, calibration, and coverage and length on the test fold. All
// experiments on these sets are made of this. Lengths are in units of mean |y| of the training
// fold, as the paper's are.
//
// Tested by tests/experiments/regression_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/level.h"
#include "fcp/methods/method.h"
#include "fcp/predictor/scored_network.h"

#include "apps/experiments/experiment.h"
#include "apps/experiments/prepared_set.h"

namespace fcp {

// One score on one seed of one set.
struct RegressionCell {
  std::string set;
  std::string method;
  uint64_t seed = 0;
  std::string note;                 // "M = 39", the cut and floor that were chosen, …
  std::optional<double> detection;  // share of rows with score ≤ radius, for the surrogate
  double coverage = 0;              // share of rows in their interval
  double worst_third = 0;           // the least coverage of a third of the rows by response
  double length = 0;                // of an empty interval 0
  double empty = 0;                 // share of empty intervals
  double seconds = 0;               // choices, calibration scores and test intervals
  std::string failed;               // why there is no result; empty: there is one
};

// residual, surrogate-ibp, surrogate-crown (both as the paper's code), nested, nested-auto,
// linearized.
const std::vector<std::string>& regression_methods();

// cqr, cqr-asymmetric, feature_cqr-paper, feature_cqr, feature_cqr-asymmetric, feature_cqr-auto:
// over two networks, one per quantile, as the paper trains them. For sets with one response.
const std::vector<std::string>& quantile_methods();

struct RegressionOptions {
  std::vector<std::string> methods = regression_methods();
  Level level = Level(0.1);
  int64_t epochs = 10;          // of training, at most; the paper's number
  std::string cut = "hidden2";  // f and g have two layers each
};

// Level, epochs and methods as asked for; `methods` where none are.
RegressionOptions regression_options(const ExperimentOptions& options,
                                     const std::vector<std::string>& methods);

// A score over a network, its choices made, and the calibration rows that are left for it.
struct BuiltScore {
  ScoredNetwork predictor;
  ScoreOptions options;
  std::string note;
  torch::Tensor x, y;

  std::vector<double> calibration_scores() const;
};

// An Error where there is none: none of 200 steps reaches 90 %, say.
BuiltScore build_score(const PreparedSet& set, const std::string& method,
                       const RegressionOptions& options);

// All methods on one seed.
std::vector<RegressionCell> run_regression(const PreparedSet& set,
                                           const RegressionOptions& options);

// The cells as rows: a JSON array.
Json rows_of(const std::vector<RegressionCell>& cells);

}  // namespace fcp
