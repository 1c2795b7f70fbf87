// Predictive distributions on a stream of rows, where the predictor has them: what their figures
// (fcp/evaluate/measures/distribution_evaluation.h) need of each row.
// Tested by tests/evaluate/evaluate_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "fcp/distributed/packing.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/measures/distribution_evaluation.h"
#include "fcp/predictor/distribution.h"

namespace fcp {

class DistributionSample {
 public:
  // Rows of several outputs, and predictors without distributions, have no figures.
  DistributionSample(const CalibrationArtifact& artifact, const RowSource& source,
                     const EvaluateOptions& options, const Context& context);

  void measure(const Rows& rows, Packer& packer) const;
  void take(Unpacker& unpacker);

  std::optional<DistributionEvaluation> finish() const;

 private:
  std::optional<PredictiveDistribution> distribution_;
  const EvaluateOptions& options_;
  size_t groups_;  // of the calibration
  size_t calibration_rows_;
  uint64_t seed_;
  DistributionEvaluator evaluator_;
  bool any_ = false;
};

}  // namespace fcp
