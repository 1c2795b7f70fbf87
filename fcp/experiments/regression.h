// CP and Feature CP on the paper's regression sets (its Figure 2 and the table of its appendix),
// and on its synthetic set, and CQR and Feature CQR with their coverage by group (its tables on
// Feature CQR): one network a set and seed, two for quantiles, several scores over it, coverage and
// length on the test fold. Lengths are in units of mean |y| of the training fold, as the paper's
// are.
//
// Tested by tests/experiments/regression_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fcp/conformal/level.h"
#include "fcp/data/array.h"

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
// over two networks, one a quantile, as the paper trains them. For sets with one response.
const std::vector<std::string>& quantile_methods();

// "synthetic" and the names of load_paper_set.
std::vector<std::string> regression_sets();

struct RegressionOptions {
  std::vector<std::string> methods = regression_methods();
  Level level = Level(0.1);
  std::string data_dir;
  int64_t epochs = 10;                                 // of training, at most; the paper's number
  std::function<void(const RegressionCell&)> observe;  // after each cell
};

// The set as loaded, or made for "synthetic". An Error where a file is missing.
DataSet load_regression_set(const std::string& name, const std::string& data_dir, uint64_t seed);

// All methods on one seed.
std::vector<RegressionCell> run_regression(const DataSet& data, const std::string& name,
                                           uint64_t seed, const RegressionOptions& options);

// Mean and sample deviation over seeds; cells that failed are counted, not averaged.
struct RegressionSummary {
  std::string set;
  std::string method;
  size_t seeds = 0;
  size_t failed = 0;
  std::optional<double> detection;
  double coverage = 0;
  double worst_third = 0;
  double length = 0;
  double length_deviation = 0;
  double seconds = 0;
};

std::vector<RegressionSummary> summarize(const std::vector<RegressionCell>& cells);

}  // namespace fcp
