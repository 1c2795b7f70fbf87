#include "fcp/evaluate/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/methods/scores/outputs.h"

#include "tests/calibrate/known_worlds.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::class_artifact;
using testing::class_rows;
using ::testing::HasSubstr;
using testing::line_artifact;
using testing::line_residual;
using testing::line_rows;

Comparison compare_on(const CalibrationArtifact& a, const CalibrationArtifact& b, MemoryRows rows) {
  MemoryRows again = rows;
  Context context;
  context.batch = 32;
  return compare({&a, &rows, {}}, {&b, &again, {}}, Level(0.1), context);
}

TEST(Compare, CountsByHand) {
  const CalibrationArtifact a = line_artifact(line_rows(99, 1));
  const CalibrationArtifact b = line_artifact(line_rows(99, 2, 3));  // three times as long
  MemoryRows rows = line_rows(500, 3);
  double covered = 0;
  for (size_t i = 0; i < 500; ++i) covered += line_residual(rows, i) <= a.rows.scores[89] ? 1 : 0;
  const Comparison found = compare_on(a, b, rows);
  EXPECT_EQ(found.rows, 500u);
  EXPECT_NEAR(found.coverage.mean_a, covered / 500, 1e-12);
  EXPECT_NEAR(found.size.mean_a, 2 * a.rows.scores[89], 1e-5);
  EXPECT_NEAR(found.size.mean_b, 2 * b.rows.scores[89], 1e-5);
  ASSERT_TRUE(found.score);
  EXPECT_LT(found.score->high, 0);
  EXPECT_EQ(found.better, "a");
  EXPECT_EQ(compare_on(b, a, rows).better, "b");
}

TEST(Compare, SaysWhereNoneIsBetter) {
  const CalibrationArtifact a = line_artifact(line_rows(99, 1));
  const Comparison found = compare_on(a, a, line_rows(100, 3));
  EXPECT_EQ(found.better, "");
  EXPECT_EQ(found.score->difference, 0);
  EXPECT_THAT(found.verdict, HasSubstr("none is better"));
}

TEST(Compare, InfiniteRegionsAreNeverBetter) {
  const CalibrationArtifact few = line_artifact(line_rows(5, 1));  // too few for 90 %
  const CalibrationArtifact many = line_artifact(line_rows(99, 2));
  const Comparison found = compare_on(few, many, line_rows(100, 3));
  EXPECT_EQ(found.size.infinite_a, 100u);
  EXPECT_EQ(found.better, "");
}

// A truth between the two intervals of a union is missed by far, whatever lies around them.
TEST(Compare, UnionsAreScoredByTheirParts) {
  torch::manual_seed(1);
  CalibrationArtifact unions;
  unions.network = make_mlp({2, 5, 1});
  unions.network.outputs.push_back(make_info(kQuantilesOutput, {kDynamic, 8}));
  unions.network.initializers["zeros"] = torch::zeros({5, 8});
  unions.network.initializers["grid"] =
      torch::tensor({-9.f, -8.9f, -8.8f, -8.7f, 8.7f, 8.8f, 8.9f, 9.f});
  unions.network.nodes.push_back(make_node("Gemm", {"h1", "zeros", "grid"}, {kQuantilesOutput}));
  unions.method.cut = "h1";
  unions.method.score = ScoreOptions("density");
  unions.method.score.set(field::level_set, true);
  for (int i = 0; i < 100; ++i) unions.rows.scores.push_back(i / 100.0);
  MemoryRows rows(line_rows(50, 3).x(), zeros({50, 1})), again = rows;
  const EvaluationReport report = evaluate(unions, again, {.level = Level(0.1)}, {});
  const Comparison found = compare_on(unions, unions, rows);
  EXPECT_NEAR(found.score->mean_a, report.methods[0].intervals().interval_score, 1e-9);
  EXPECT_GT(found.score->mean_a, 100);
}

TEST(Compare, RefusesIntervalsBesideLabels) {
  const CalibrationArtifact a = class_artifact(class_rows(99, 1));
  const Comparison found = compare_on(a, a, class_rows(50, 2));
  EXPECT_FALSE(found.score);
  const CalibrationArtifact b = line_artifact(line_rows(99, 1));
  MemoryRows labels = class_rows(50, 2), lines = line_rows(50, 2);
  Context context;
  EXPECT_THROW(compare({&a, &labels, {}}, {&b, &lines, {}}, Level(0.1), context), Error);
}

}  // namespace
}  // namespace fcp
