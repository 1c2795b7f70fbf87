// One calibrated score evaluated on a stream of rows: what `evaluate` does for the predictor and,
// beside it, for the plain score it is compared with. Ranks measure batches, and rank 0 takes them
// in their order, so that the figures are the same for any number of ranks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibration/tensor_predictor.h"
#include "fcp/conformal/level.h"
#include "fcp/data/rows.h"
#include "fcp/distributed/packing.h"
#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/report/interval_report.h"

namespace fcp {

// What a method says of a batch of N rows of K outputs.
struct MethodBatch {
  std::vector<double> prediction, lower, upper;  // [N × K]
  // What the coverage curve is drawn from: scores [N] where one radius holds for all rows, p-values
  // [N] where it does not, and where the radii of some levels alone are kept, for each of them the
  // number of rows within.
  std::vector<double> scores;
  std::vector<double> p_values;
  std::vector<uint64_t> within;
  uint64_t detected = 0;  // rows whose scores are within their radii
  uint64_t rows = 0;      // N

  size_t outputs() const { return prediction.size() / rows; }
  void pack(Packer& packer) const;
  static MethodBatch unpack(Unpacker& unpacker);
};

class MethodStream {
 public:
  // All three must outlive this; `source` is where the rows come from, for messages.
  MethodStream(const CalibrationArtifact& artifact, const TensorPredictor& predictor,
               const RowSource& source, const Level& level, std::vector<std::string> group_names);

  // `truth` is [N, K] doubles on the host. An Error names a row whose answer is not a number.
  MethodBatch measure(const TestInputs& rows, size_t first_row, const torch::Tensor& truth) const;

  // Groups are given always or never.
  void take(const MethodBatch& batch, std::span<const double> truth,
            std::span<const int64_t> groups);

  // The result, with the coverage curve and, where the law does not hold, the coverage of
  // detection.
  MethodResult finish() const;

 private:
  bool one_radius() const;
  bool all_scores() const { return artifact_.rows.levels.empty(); }

  const CalibrationArtifact& artifact_;
  const TensorPredictor& predictor_;
  const RowSource& source_;
  Level level_;
  std::vector<std::string> group_names_;
  std::optional<IntervalEvaluator> evaluator_;
  // Of the rows added, as in a batch.
  std::vector<double> scores_;
  std::vector<double> p_values_;
  std::vector<uint64_t> within_;
  size_t detected_ = 0;
  size_t rows_ = 0;
};

// Whether each row's scores are all within its radii; the paper's code is strict.
std::vector<bool> within_radii(const TensorPredictor& predictor, const TestInputs& rows,
                               const torch::Tensor& truth, const std::vector<double>& scores,
                               const Level& level, bool strict);

// Where the radii of some levels alone are kept: the number of rows within those of each.
std::vector<uint64_t> count_within(const CalibrationArtifact& artifact,
                                   const TensorPredictor& predictor, const TestInputs& rows,
                                   const torch::Tensor& truth, const std::vector<double>& scores);
void add_counts(std::vector<uint64_t>& sums, std::span<const uint64_t> counts);
// The coverage curve of those sums.
std::vector<CurvePoint> curve_of_levels(const CalibrationArtifact& artifact,
                                        std::span<const uint64_t> sums, size_t rows);

// The scores of rows and, where they are asked for, their p-values.
Conformity judge_rows(const TensorPredictor& predictor, const TestInputs& rows,
                      const torch::Tensor& truth, bool p_values);

// Levels of the coverage curve: 0.02, 0.04, … 0.5, as exact fractions.
std::vector<Level> curve_levels();

// The plain score that the predictor's own is compared with, on the same rows: calibrated by split.
// None for a plain score.
std::optional<CalibrationArtifact> baseline_predictor(const CalibrationArtifact& artifact);

// The nearest float32 numbers that do not shrink the intervals of which these are the ends.
torch::Tensor round_outward(const torch::Tensor& end, bool down);

// The numbers of a tensor of doubles on the host.
std::span<const double> numbers(const torch::Tensor& tensor);

}  // namespace fcp
