#include "fcp/experiments/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"

#include "tests/scores/heads.h"
#include "tests/scores/label_heads.h"

namespace fcp {
namespace {

ClassificationData synthetic_labels(int64_t rows) {
  Random random(1);
  ClassificationData data;
  data.head = network_of(linear_head(random_normal(random, {8, 5}), random_normal(random, {8})));
  data.features = random_normal(random, {rows, 5});
  data.labels = drawn_labels(random, data.head->forward(data.features)).squeeze(1);
  return data;
}

TEST(Classification, EveryMethodAnswers) {
  ClassificationOptions options;
  options.halvings = 2;
  options.levels = {Level(0.1)};
  options.score.step_rate = 0.5;
  options.score.samples = 200;
  size_t observed = 0;
  const auto cells = run_classification(synthetic_labels(2000), options,
                                        [&](const ClassificationCell&) { ++observed; });
  ASSERT_EQ(cells.size(), 2 * classification_methods().size());
  EXPECT_EQ(observed, cells.size());
  for (const ClassificationCell& cell : cells) {
    ASSERT_EQ(cell.failed, "") << cell.method;
    EXPECT_EQ(cell.detection.has_value(), cell.method == "feature_sampled");
    EXPECT_GT(cell.size, 1);
    EXPECT_LT(cell.size, 8);
    EXPECT_LE(cell.worst_stratum, cell.coverage);
    // 800 calibration rows and 1000 test rows: the number of covered rows is beta-binomial, beyond
    // [0.82, 0.96] lies less than 1e-6 of it.
    const double guaranteed = cell.detection.value_or(cell.coverage);
    EXPECT_GT(guaranteed, 0.82) << cell.method;
    EXPECT_LT(guaranteed, 0.96) << cell.method;
  }
  const auto again = run_classification(synthetic_labels(2000), options);
  for (size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(cells[i].size, again[i].size);
}

TEST(Classification, AMethodThatFailsSaysWhy) {
  ClassificationOptions options;
  options.halvings = 1;
  options.methods = {"feature_sampled"};
  options.levels = {Level(0.1)};
  options.score.step_rate = 1e-9;
  EXPECT_THAT(run_classification(synthetic_labels(100), options).at(0).failed,
              testing::HasSubstr("too few"));
  const auto cells = run_classification(synthetic_labels(1000), options);
  EXPECT_THAT(cells.at(0).failed, testing::HasSubstr("none of 200 steps"));
  EXPECT_THAT(markdown_table(summarize(cells)), testing::HasSubstr("failed"));
}

TEST(Classification, SummariesAverageWhatDidNotFail) {
  std::vector<ClassificationCell> cells(4);
  for (ClassificationCell& cell : cells) cell.method = "m", cell.level = "0.1";
  cells[0].size = 1, cells[0].coverage = 0.8, cells[0].detection = 0.9, cells[0].violation = 0.1;
  cells[1].size = 3, cells[1].coverage = 1.0, cells[1].detection = 0.7, cells[1].violation = 0.3;
  cells[2].failed = "no";
  cells[3].level = "0.05";
  const std::vector<ClassificationSummary> summaries = summarize(cells);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].halvings, 2u);
  EXPECT_EQ(summaries[0].failed, 1u);
  EXPECT_DOUBLE_EQ(summaries[0].size, 2);
  EXPECT_DOUBLE_EQ(summaries[0].size_deviation, std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(summaries[0].coverage, 0.9);
  EXPECT_DOUBLE_EQ(*summaries[0].detection, 0.8);
  EXPECT_DOUBLE_EQ(summaries[0].violation, 0.2);
  EXPECT_EQ(summaries[1].level, "0.05");
  EXPECT_THAT(markdown_table(summaries),
              testing::HasSubstr("| m | 0.1 | 90.0 % (detection 80.0 %) | 2.00 ± 1.41 |"));
}

}  // namespace
}  // namespace fcp
