// Conditional coverage on a uniform sample of the rows: what worst slab, excess risk, correlation
// and stability (fcp/evaluate/measures/conditional.h) need of a row besides its region. Memory: the
// numbers of at most 5,000 rows, whatever the number of rows.
//
// Rows of images, or of more than 1,024 numbers, are not sampled: slabs of pixels say nothing.
// Tested by tests/evaluate/evaluate_test.cc and tests/cli/test_calibration.py.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fcp/distributed/packing.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/measures/conditional.h"
#include "fcp/evaluate/report_sample.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

// One row that was drawn.
struct ConditionalRow {
  std::vector<double> x;
  std::vector<double> facts;  // covered, length, then the ends of the predictor and its refits
};

// Whether the region of each row holds its truth, [N].
torch::Tensor covered_rows(const Regions& regions, const torch::Tensor& truth);

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
  std::vector<Drawn<ConditionalRow>> sampled_of(const Rows& rows, const Regions& regions);

  bool active_ = false;
  Level level_;
  uint64_t seed_;
  RowSampler sampler_;
  std::vector<std::unique_ptr<internal::PredictorCore>> refits_;
  std::vector<ConditionalRow> sample_;
};

}  // namespace fcp
