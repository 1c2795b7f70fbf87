#include "apps/experiments/prepared_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/data/csv_writer.h"
#include "fcp/data/rows.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;

double mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(SyntheticSet, HasThePapersShapeAndDependsOnTheSeed) {
  const DataSet set = synthetic_set(1);
  EXPECT_THAT(set.x.shape, ElementsAre(10000, 100));
  EXPECT_THAT(set.y.shape, ElementsAre(10000, 10));
  EXPECT_EQ(synthetic_set(1).y.values, set.y.values);
  EXPECT_NE(synthetic_set(2).y.values, set.y.values);
  const auto [low, high] = std::minmax_element(set.x.values.begin(), set.x.values.end());
  EXPECT_GE(*low, 0);
  EXPECT_LE(*high, 1);
}

// With one input, what a regression leaves has variance 1; over 10,000 rows its estimate has
// deviation √2/100, so 0.075 is 5.3 of them: a chance below 2e-7.
TEST(SyntheticSet, IsLinearWithStandardNormalNoise) {
  const DataSet set = synthetic_set(3, {.rows = 10000, .inputs = 1, .outputs = 1});
  double xx = 0, xy = 0, square = 0;
  for (size_t i = 0; i < 10000; ++i) {
    xx += set.x.values[i] * set.x.values[i];
    xy += set.x.values[i] * set.y.values[i];
  }
  for (size_t i = 0; i < 10000; ++i) {
    const double rest = set.y.values[i] - xy / xx * set.x.values[i];
    square += rest * rest / 10000;
  }
  EXPECT_NEAR(square, 1, 0.075);
}

TEST(DenseNetwork, AppliesReluBetweenLayersOnly) {
  const DenseNetwork network{{Array{{2, 1}, {1, -1}}, Array{{1, 2}, {-2, 3}}},
                             {Array{{2}, {0, 0.5f}}, Array{{1}, {1}}}};
  // x = 2: relu(2, -1.5) = (2, 0), then -4 + 1. x = -1: relu(-1, 1.5) = (0, 1.5), then 4.5 + 1.
  EXPECT_THAT(evaluate(network, Array{{2, 1}, {2, -1}}).values, ElementsAre(-3, 5.5f));
}

// The share of zeros among 10,000 has deviation 0.003; 0.016 is 5.3 of them: a chance below 2e-7.
TEST(ZeroQuantileSet, HasNoNoiseInNineOfTenRows) {
  const ZeroQuantileSet set = zero_quantile_set(4);
  const Array truth = evaluate(set.truth, set.data.x);
  double zeros = 0;
  for (size_t i = 0; i < 10000; ++i) {
    zeros += set.data.y.values[i] == truth.values[i];
    ASSERT_EQ(set.data.y.values[i], truth.values[i] + set.noise.values[i]);
  }
  EXPECT_NEAR(zeros / 10000, 0.901, 0.016);
  EXPECT_EQ(set.truth.weights.size(), 3u);
  EXPECT_NE(zero_quantile_set(5).data.y.values, set.data.y.values);
}

// The noise level of the rows with the densest way is several times that of the easiest.
TEST(DemoSet, IsHeteroscedastic) {
  const DataSet set = demo_set(6);
  EXPECT_THAT(set.x.shape, ElementsAre(6000, 8));
  EXPECT_EQ(set.columns.size(), 8u);
  std::vector<float> easy, hard;
  for (size_t i = 0; i < 6000; ++i) {
    const auto row = set.x.row(i);
    const float distance = row[0], items = row[3], rain = row[4], traffic = row[5], years = row[6];
    const float expected = 8 + 2.2f * distance * (1 + 0.8f * traffic) + 1.5f * items +
                           3 * std::sqrt(rain) - 0.8f * std::min(years, 5.f) +
                           (row[2] >= 5 ? 3.f : 0.f) + (row[7] < 0 ? 4.f : 0.f);
    const float error = std::fabs(set.y.values[i] - expected);
    if (distance * traffic < 1) easy.push_back(error);
    if (distance * traffic > 7) hard.push_back(error);
  }
  ASSERT_GT(easy.size(), 300u);
  ASSERT_GT(hard.size(), 300u);
  EXPECT_GT(mean(hard), 4 * mean(easy));
  EXPECT_LT(mean(easy), 2);
}

TEST(DemoSet, SurvivesACsvFile) {
  const Folder folder;
  const DataSet set = demo_set(7, 200);
  write_csv(folder.path("demo.csv"), set);
  const auto source = open_rows(folder.path("demo.csv"), "minutes");
  EXPECT_EQ(source->column_names(), set.columns);
  EXPECT_EQ(read_all(*source).x.values, set.x.values);
  EXPECT_EQ(read_all(*source).y.values, set.y.values);
}

}  // namespace
}  // namespace fcp
