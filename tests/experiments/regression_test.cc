#include "fcp/experiments/regression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/data/synthetic.h"

namespace fcp {
namespace {

TEST(Regression, EveryMethodAnswersOnASmallSet) {
  const DataSet data = demo_set(1, 1500);
  RegressionOptions options;
  size_t observed = 0;
  options.observe = [&](const RegressionCell&) { ++observed; };
  const std::vector<RegressionCell> cells = run_regression(data, "demo", 3, options);
  ASSERT_EQ(cells.size(), regression_methods().size());
  EXPECT_EQ(observed, cells.size());
  for (const RegressionCell& cell : cells) {
    if (cell.method.starts_with("surrogate")) {
      // Its number of steps may not exist; then the reason is said.
      EXPECT_NE(cell.failed.empty(), !cell.detection.has_value()) << cell.method;
      continue;
    }
    ASSERT_EQ(cell.failed, "") << cell.method;
    EXPECT_FALSE(cell.detection.has_value());
    EXPECT_GT(cell.length, 0) << cell.method;
    // 600 calibration rows (480 after a selection) and 300 test rows: the number of covered rows is
    // beta-binomial; beyond [0.77, 0.98] lies less than 1e-6 of it.
    EXPECT_GT(cell.coverage, 0.77) << cell.method;
    EXPECT_LT(cell.coverage, 0.98) << cell.method;
  }
}

TEST(Regression, SameSeedSameCells) {
  const DataSet data = demo_set(1, 300);
  RegressionOptions options;
  options.methods = {"residual", "linearized"};
  const auto a = run_regression(data, "demo", 3, options);
  const auto b = run_regression(data, "demo", 3, options);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].length, b[i].length);
    EXPECT_EQ(a[i].coverage, b[i].coverage);
  }
}

TEST(Regression, SummariesAverageWhatDidNotFail) {
  std::vector<RegressionCell> cells(4);
  for (RegressionCell& cell : cells) {
    cell.set = "s";
    cell.method = "m";
  }
  cells[0].length = 1, cells[0].coverage = 0.8, cells[0].detection = 0.9;
  cells[1].length = 3, cells[1].coverage = 1.0, cells[1].detection = 0.7;
  cells[2].failed = "no";
  cells[3].method = "other";
  const std::vector<RegressionSummary> summaries = summarize(cells);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].seeds, 2u);
  EXPECT_EQ(summaries[0].failed, 1u);
  EXPECT_DOUBLE_EQ(summaries[0].length, 2);
  EXPECT_DOUBLE_EQ(summaries[0].length_deviation, std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(summaries[0].coverage, 0.9);
  EXPECT_DOUBLE_EQ(*summaries[0].detection, 0.8);
  EXPECT_EQ(summaries[1].method, "other");
}

TEST(Regression, AMissingFileIsNamed) {
  EXPECT_THROW(load_regression_set("community", "/nonexistent", 0), Error);
  EXPECT_EQ(load_regression_set("synthetic", "", 0).y.shape[1], 10);
}

}  // namespace
}  // namespace fcp
