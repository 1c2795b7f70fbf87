// Two calibrated predictors on the same rows, pair by pair: coverage, length, interval score.
// Tested by tests/evaluate/compare_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "fcp/data/rows.h"
#include "fcp/evaluate/measures/paired.h"
#include "fcp/level.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/row_facts.h"

namespace fcp {

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
