// Probabilities of classes on a stream of rows, where the predictor has them: what their figures
// (fcp/evaluate/measures/probability_evaluation.h) need of each row.
// Tested by tests/evaluate/evaluate_test.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fcp/distributed/packing.h"
#include "fcp/evaluate/judge.h"
#include "fcp/evaluate/measures/probability_evaluation.h"
#include "fcp/predictor/class_probabilities.h"

namespace fcp {

class ProbabilitySample {
 public:
  // Predictors of intervals and of pixels have no figures. The judge must outlive this.
  ProbabilitySample(const Judge& judge, std::vector<std::string> class_names);

  void measure(const JudgedRows& rows, Packer& packer) const;
  void take(Unpacker& unpacker);

  std::optional<ProbabilityEvaluation> finish() const;

 private:
  std::vector<std::string> class_names_;
  std::optional<ClassProbabilities> probabilities_;
  ProbabilityEvaluator evaluator_, softmax_;
  double gaps_ = 0;
};

}  // namespace fcp
