// One calibrated score evaluated on a stream of rows: what `evaluate` does for the predictor and,
// beside it, for the plain score it is compared with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibration/calibrated_predictor.h"
#include "fcp/conformal/level.h"
#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/report/interval_report.h"

namespace fcp {

class MethodStream {
 public:
  // Both must outlive this.
  MethodStream(const Calibrated& calibrated, const CalibratedPredictor& predictor,
               const Level& level, std::vector<std::string> group_names);

  // Adds rows and returns their intervals, on the host. `truth` is [N, K] doubles on the host;
  // groups are given always or never.
  Regions add(const NewRows& rows, const torch::Tensor& truth, std::span<const int64_t> groups);

  // The result, with the coverage curve and, where the law does not hold, the coverage of
  // detection.
  MethodResult finish() const;

 private:
  const Calibrated& calibrated_;
  const CalibratedPredictor& predictor_;
  Level level_;
  std::vector<std::string> group_names_;
  std::optional<IntervalEvaluator> evaluator_;
  std::vector<double> scores_;    // of the rows added, where the score has one side
  std::vector<double> p_values_;  // of the rows added
  size_t detected_ = 0;
};

// Whether each row's scores are all within its radii; the paper's code is strict.
std::vector<bool> within_radii(const CalibratedPredictor& predictor, const NewRows& rows,
                               const torch::Tensor& truth, const std::vector<double>& scores,
                               const Level& level, bool strict);

// Levels of the coverage curve: 0.02, 0.04, … 0.5, as exact fractions.
std::vector<Level> curve_levels();

// The plain score that the predictor's own is compared with, on the same rows: calibrated by split.
// None for a plain score.
std::optional<Calibrated> baseline_predictor(const Calibrated& calibrated);

// The nearest float32 numbers that do not shrink the intervals of which these are the ends.
torch::Tensor round_outward(const torch::Tensor& end, bool down);

// The numbers of a tensor of doubles on the host.
std::span<const double> numbers(const torch::Tensor& tensor);

}  // namespace fcp
