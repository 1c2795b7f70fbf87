#include "apps/experiments/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"

#include "apps/experiments/classification_sets.h"
#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"

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
  options.sampled.step_rate = 0.5;
  options.sampled.samples = 200;
  const auto cells = run_classification(synthetic_labels(2000), options);
  ASSERT_EQ(cells.size(), 2 * classification_methods().size());
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
  options.sampled.step_rate = 1e-9;
  EXPECT_THAT(run_classification(synthetic_labels(100), options).at(0).failed,
              testing::HasSubstr("too few"));
  const auto cells = run_classification(synthetic_labels(1000), options);
  EXPECT_THAT(cells.at(0).failed, testing::HasSubstr("none of 200 steps"));
}

TEST(Classification, DrawnLabelsNeedNoFiles) {
  const ClassificationData data = load_classification_set("drawn-labels", "");
  ASSERT_EQ(data.features.size(0), data.labels.size(0));
  // A label is the likeliest one more often than any other would be: the head knows something.
  const auto hits = (data.head->forward(data.features).argmax(1) == data.labels).sum();
  EXPECT_GT(hits.item<int64_t>(), data.labels.size(0) / 3);
  EXPECT_LT(hits.item<int64_t>(), data.labels.size(0));
}

}  // namespace
}  // namespace fcp
