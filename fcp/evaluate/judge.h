// Rows with truths under a calibrated predictor: their regions, how usual the truths are, and
// whether they are in. What evaluate, compare and replay have in common; an answer or a score
// that is NaN is an Error that names the row, in all of them.
// Tested by tests/evaluate/evaluate_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/rows.h"
#include "fcp/evaluate/measures/interval_evaluation.h"
#include "fcp/level.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

// How usual each row's truth is.
struct Conformity {
  std::vector<double> scores;    // [N × sides]
  std::vector<double> p_values;  // [N × targets]
};

// A batch after the network ran on it, which must live as long.
struct JudgedRows {
  const Rows& rows;
  TestInputs inputs;
  torch::Tensor truth;  // [N, K]; of labels [N, 1]

  size_t count() const { return rows.x.rows(); }
  Rows::Text names() const {
    return [this](size_t i) { return rows.place(i); };
  }
};

// Intervals, or unions of them, and truths where plain code can read them.
struct HostIntervals {
  HostIntervals(const torch::Tensor& truths, const Regions& regions);

  uint64_t outputs() const { return static_cast<uint64_t>(lower.size(1)); }
  IntervalBatch batch() const;

  torch::Tensor lower, upper, truth, parts;
  torch::Tensor prediction;  // of one-sided bounds
  BoundSide side;
  std::vector<uint8_t> inside;  // of boxes around regions; with
  torch::Tensor volumes;        // their own volumes
};

class Judge {
 public:
  // The artifact must outlive this.
  explicit Judge(const CalibrationArtifact& artifact, torch::Device device = torch::kCPU)
      : predictor_(std::shared_ptr<const CalibrationArtifact>(std::shared_ptr<void>(), &artifact),
                   device) {}

  // Runs the network. `first`: the number of the first row among those of the facts.
  JudgedRows run(const Rows& rows, const RowFacts& facts, size_t first) const;

  Regions regions(const JudgedRows& rows, const Level& level) const;
  // p-values cost another search of the calibration scores; where they are not wanted, there are
  // none.
  Conformity judge(const JudgedRows& rows, bool p_values = true) const;
  // Whether each truth, of these scores, is within its radii.
  std::vector<bool> within(const JudgedRows& rows, const std::vector<double>& scores,
                           const Level& level) const {
    return predictor_.within(rows.inputs, rows.truth, scores, level);
  }

  const CalibrationArtifact& artifact() const { return predictor_.artifact(); }
  const internal::PredictorCore& predictor() const { return predictor_; }
  const Score& score() const { return predictor_.score(); }

 private:
  internal::PredictorCore predictor_;
};

// Two calibrated predictors on the same rows, pair by pair: coverage, length, interval score.
// Tested by tests/evaluate/judge_test.cc.

struct ComparedPredictor {
  const CalibrationArtifact* artifact = nullptr;
  RowSource* rows = nullptr;  // the same rows for both, read as each network wants them
  RowFacts facts{};
};

struct Comparison {
  Level level = Level(0.1);
  size_t rows = 0;
  PairedDifference coverage;              // of 0 and 1
  PairedDifference size;                  // lengths, or labels in the set
  std::optional<PairedDifference> score;  // interval scores; none for sets of labels
  // "a", "b", or "" where none is better. Whoever has the smaller interval score beyond doubt is
  // better; for sets whoever has the smaller sets, and covers no less, beyond doubt. One that has
  // infinite regions where the other has none is never better.
  std::string better;
  std::string verdict;  // a sentence
};

// An Error where the numbers of rows differ, or one predicts intervals and the other labels.
Comparison compare(const ComparedPredictor& a, const ComparedPredictor& b, const Level& level,
                   const Context& context);

}  // namespace fcp
