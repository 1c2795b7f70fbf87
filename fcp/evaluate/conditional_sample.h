// Conditional coverage on a uniform sample of the rows: what worst slab, excess risk, correlation
// and stability (fcp/evaluation/conditional.h) need of a row besides its region. Memory: the
// numbers of at most 5,000 rows, whatever the number of rows.
//
// Rows of images, or of more than 1,024 numbers, are not sampled: slabs of pixels say nothing.
// Tested by tests/pipeline/evaluate_test.cc and tests/cli/test_calibration.py.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fcp/calibration/tensor_predictor.h"
#include "fcp/distributed/packing.h"
#include "fcp/evaluation/conditional.h"
#include "fcp/pipeline/evaluate.h"
#include "fcp/pipeline/example_sampler.h"

namespace fcp {

class ConditionalSample {
 public:
  // An Error where a refit cannot be compared with the predictor.
  ConditionalSample(const CalibrationArtifact& artifact, const RowSource& source,
                    const EvaluateOptions& options, const Context& context);

  // `regions` are those of the predictor.
  void measure(const Rows& rows, const Regions& regions, Packer& packer);
  void take(Unpacker& unpacker);

  // None where rows are not sampled.
  std::optional<ConditionalCoverage> finish() const;

 private:
  // One row that was drawn.
  struct Sampled {
    std::vector<double> x;
    std::vector<double> facts;  // covered, length, then the ends of the predictor and its refits
  };

  bool active_ = false;
  Level level_;
  uint64_t seed_;
  RowSampler sampler_;
  std::vector<std::unique_ptr<TensorPredictor>> refits_;
  std::vector<Sampled> sample_;
};

}  // namespace fcp
