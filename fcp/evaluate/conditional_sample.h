// Conditional coverage on a uniform sample of the rows: what worst slab, excess risk, correlation
// and stability (fcp/evaluate/measures/conditional.h) need of a row besides its region. Memory: the
// numbers of at most 5,000 rows, whatever the number of rows.
//
// Rows of images, or of more than 1,024 numbers, are not sampled: slabs of pixels say nothing.
// Tested by tests/evaluate/evaluate_test.cc and tests/cli/test_calibration.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/rows.h"
#include "fcp/distributed/packing.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/measures/conditional.h"
#include "fcp/evaluate/report_sample.h"
#include "fcp/methods/scores/score.h"
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

// Coverage by what is known of rows besides their regions: by the categories of each column, by
// period, and how alike the rows of one group are. Memory does not grow with the rows.
//
// A column is uneven by the excess of its chi-squared statistic against equal coverage, of its
// categories of ten rows or more, in standard deviations; the three most uneven columns are kept.
//
// The design effect of groups is the variance of the share of covered rows as their sums by group
// tell it, over that of independent rows: Kish, Survey Sampling, 1965. At least 1; the rows of a
// group where all rows are covered or none.
//
// Tested by tests/evaluate/evaluate_test.cc and tests/cli/test_fit.py.

class PartCoverage {
 public:
  PartCoverage(const RowSource& source, const EvaluateOptions& options);

  // `regions` are those of the predictor.
  void measure(const Rows& rows, const Regions& regions, Packer& packer) const;
  void take(Unpacker& unpacker);

  void finish(EvaluationReport& report) const;

 private:
  struct Column {
    std::string name;
    size_t first = 0;                  // of its features
    std::vector<std::string> names{};  // of its values
    bool flag = false;                 // one feature, 0 or 1
    GroupCounts counts{};
  };

  int64_t value_of(const Column& column, const float* row) const;

  const EvaluateOptions& options_;
  std::vector<Column> columns_;
  size_t width_ = 0;
  GroupCounts periods_, together_;
  size_t rows_ = 0;
};

// n groups of rows, each with those that are covered.
double design_effect(const GroupCounts& groups);

}  // namespace fcp
