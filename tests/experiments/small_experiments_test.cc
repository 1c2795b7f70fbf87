// The experiments that need no network of the paper's: their rows are what theory says.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/experiments/experiment.h"
#include "apps/experiments/result_rows.h"

namespace fcp {
namespace {

Json run_rows(const Experiment& experiment, const std::string& set, uint64_t seed = 0) {
  return experiment.run({set, seed}, {});
}

TEST(WorkedExample, GivesThePapersNumbers) {
  const Json rows = run_rows(worked_example(), "example");
  ASSERT_EQ(rows.size(), 5u);
  const RowGroup all = group_rows(rows, {}).at(0);
  EXPECT_DOUBLE_EQ(all.spread("vanilla_band").mean, 4.0);
  EXPECT_NEAR(all.spread("feature_band").mean, 3.1, 1e-12);
  EXPECT_DOUBLE_EQ(number_of(rows[0], "feature_quantile"), 1.3);
}

TEST(LengthVariance, TheBoundHoldsAndSaysSomethingForSmallRadii) {
  for (const char* head : {"quadratic", "tanh"}) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const Json rows = run_rows(length_variance(), head, seed);
      for (const Json& row : rows) {
        EXPECT_GE(number_of(row, "variance"), number_of(row, "bound")) << row;
      }
      EXPECT_GT(number_of(rows[0], "bound"), 0) << head << seed;
    }
  }
}

TEST(LengthVariance, ALinearHeadHasOneLength) {
  for (const Json& row : run_rows(length_variance(), "linear")) {
    EXPECT_NEAR(number_of(row, "variance"), 0, 1e-12);
    EXPECT_EQ(number_of(row, "smoothness"), 0);
  }
}

TEST(LengthConvergence, TheMeanOfExponentialScoresIsASumOfReciprocals) {
  for (const Json& row : run_rows(length_convergence(), "exponential")) {
    const auto n = static_cast<int>(number_of(row, "rows"));
    const int rank = 9 * (n + 1) / 10;
    double mean = 0;  // of the order statistic of that rank
    for (int i = n - rank + 1; i <= n; ++i) mean += 1.0 / i;
    EXPECT_NEAR(number_of(row, "mean_length"), 2 * mean, 2e-4 * mean) << n;
    EXPECT_DOUBLE_EQ(number_of(row, "exact_length"), 2 * std::log(10.0));
  }
}

TEST(LengthConvergence, TheBiasFallsAsOneOverNAndTheDeviationAsItsRoot) {
  const Json rows = run_rows(length_convergence(), "half-normal");
  const Json& first = rows[2];
  const Json& last = rows[rows.size() - 1];
  const double ratio = number_of(last, "rows") / number_of(first, "rows");
  EXPECT_NEAR(number_of(first, "bias") / number_of(last, "bias") / ratio, 1, 0.1);
  EXPECT_NEAR(number_of(first, "deviation") / number_of(last, "deviation") / std::sqrt(ratio), 1,
              0.1);
}

TEST(ZeroQuantile, AnExactNetworkCoversItsShareByPoints) {
  ExperimentOptions options;
  options.quick = true;
  options.methods = {"residual", "nested"};
  for (const Json& row : zero_quantile().run({"exact", 1}, options)) {
    ASSERT_FALSE(row.contains("failed")) << row;
    // 400 test rows and 800 for calibration: beyond [0.8, 0.99] lies less than 1e-6 of the
    // coverage's beta-binomial law; ties at zero only add to it.
    EXPECT_GT(number_of(row, "coverage"), 0.8) << row;
    EXPECT_LT(number_of(row, "coverage"), 0.99) << row;
    EXPECT_GE(number_of(row, "length"), 0);
  }
}

// One quick cell of every experiment, presented: rows without numbers would show here.
class QuickExperiment : public testing::TestWithParam<std::string> {};

TEST_P(QuickExperiment, RunsAndIsPresented) {
  const Experiment& experiment = *find_experiment(GetParam());
  ExperimentOptions options;
  options.quick = true;
  options.epochs = 2;
  Json rows = Json::array();
  for (const CellKey& key : cells_of(experiment, options)) {
    for (const Json& row : experiment.run(key, options)) rows.push_back(row);
  }
  ASSERT_FALSE(rows.empty());
  for (const Json& row : rows) {
    for (const auto& [field, value] : row.items()) EXPECT_FALSE(value.is_structured()) << field;
  }
  const ResultSection section = section_of(experiment, options, rows);
  EXPECT_TRUE(section.readings.empty());
  EXPECT_FALSE(section.setup.empty());
  ASSERT_FALSE(section.tables.empty());
  for (const ResultTable& table : section.tables) {
    EXPECT_FALSE(table.rows.empty()) << table.caption;
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.headers.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Small, QuickExperiment,
                         testing::Values("example", "levels", "untrained", "cuts", "cubic",
                                         "scores", "variance", "convergence"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace fcp
