// One score evaluated on a stream of rows: what `evaluate` does for the calibrated score and,
// beside it, for the plain residual.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/report/interval_report.h"
#include "fcp/scores/score.h"

namespace fcp {

class MethodStream {
 public:
  // `score` must outlive this.
  MethodStream(const Score& score, double radius, const Level& level,
               std::vector<std::string> group_names);

  // Adds rows and returns their intervals, on the host. `truth` is [N, K] doubles on the host;
  // groups are given always or never.
  Regions add(const torch::Tensor& features, const torch::Tensor& truth,
              std::span<const int64_t> groups);

  // The result, with the coverage curve that these calibration scores give.
  MethodResult finish(const std::string& name, const std::vector<double>& calibration) const;

  const std::vector<double>& scores() const { return scores_; }  // of the rows added

 private:
  const Score& score_;
  double radius_;
  Level level_;
  std::vector<std::string> group_names_;
  std::optional<IntervalEvaluator> evaluator_;
  std::vector<double> scores_;
};

// The numbers of a tensor of doubles on the host.
std::span<const double> numbers(const torch::Tensor& tensor);

}  // namespace fcp
