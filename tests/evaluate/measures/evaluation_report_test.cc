#include "fcp/evaluate/measures/evaluation_report.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Batches add up to what the evaluation of all rows says.
TEST(LevelResult, AgreesWithTheEvaluationOfAllRows) {
  const std::vector<double> lower = {0, -1, 2, 5, 1, 0}, upper = {1, 1, 3, 4, 4, 2},
                            truth = {0.5, 0, 2.5, 4, 5, 1};
  LevelSums sums;
  for (size_t row = 0; row < 3; ++row) {
    IntervalBatch one;
    one.lower = std::span(lower).subspan(2 * row, 2);
    one.upper = std::span(upper).subspan(2 * row, 2);
    one.truth = std::span(truth).subspan(2 * row, 2);
    sums.add(level_sums(one, 2));
  }
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  const IntervalEvaluation all = evaluate_intervals(rows, 2);
  const LevelResult result = sums.result(Level(0.1));
  EXPECT_EQ(result.coverage.covered, all.coverage.covered);
  EXPECT_EQ(result.coverage.covered, 1u);
  EXPECT_EQ(result.coverage.rows, 3u);
  EXPECT_DOUBLE_EQ(result.size, all.length.mean);
  EXPECT_EQ(sums.sizes.empty, 1u);
  EXPECT_EQ(result.infinite_share, 0);
}

TEST(LevelResult, AnInfiniteIntervalMakesTheMeanInfinite) {
  const std::vector<double> lower = {-kInfinite, 0}, upper = {kInfinite, 1}, truth = {7, 2};
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  const LevelResult result = level_sums(rows, 1).result(Level(0.1));
  EXPECT_EQ(result.size, kInfinite);
  EXPECT_EQ(result.infinite_share, 0.5);
  EXPECT_EQ(result.coverage.covered, 1u);
}

// A truth between two parts is missed, and the gap is no length.
TEST(LevelResult, UnionsCountTheirParts) {
  const std::vector<double> lower = {0}, upper = {10}, truth = {5}, parts = {0, 1, 8, 10};
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  rows.parts = parts;
  rows.part_count = 2;
  const LevelResult result = level_sums(rows, 1).result(Level(0.1));
  EXPECT_EQ(result.coverage.covered, 0u);
  EXPECT_EQ(result.size, 3);
}

TEST(LevelResult, SetsOfLabels) {
  const std::vector<uint8_t> members = {1, 0, 0, 1, 1, 0};
  const std::vector<int64_t> truth = {0, 2};
  const LevelResult result =
      level_sums(LabelSetBatch{.members = members, .truth = truth}, 3).result(Level(0.2));
  EXPECT_EQ(result.size, 1.5);
  EXPECT_EQ(result.coverage.covered, 1u);
}

TEST(LevelResult, SumsOfAnotherLengthAreRefused) {}

}  // namespace
}  // namespace fcp
