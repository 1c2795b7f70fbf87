#include "apps/experiments/regression.h"

#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/experiments/prepared_set.h"

namespace fcp {
namespace {

TEST(Regression, EveryMethodAnswersOnASmallSet) {
  const PreparedSet set = prepare(demo_set(1, 1500), 3);
  const std::vector<RegressionCell> cells = run_regression(set, {});
  ASSERT_EQ(cells.size(), regression_methods().size());
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
  const auto a = run_regression(prepare(data, 3), options);
  const auto b = run_regression(prepare(data, 3), options);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].length, b[i].length);
    EXPECT_EQ(a[i].coverage, b[i].coverage);
  }
}

TEST(Regression, TheCutIsTheOneAskedFor) {
  const PreparedSet set = prepare(demo_set(1, 300), 3);
  RegressionOptions options;
  options.epochs = 1;
  for (const auto& [cut, features] : {std::pair{"hidden1", 64}, {"input", 8}}) {
    options.cut = cut;
    const BuiltScore built = build_score(set, "residual", options);
    EXPECT_EQ(built.predictor.features(set.x_test).size(1), features) << cut;
  }
}

TEST(Regression, QuantilesAreForOneResponse) {
  RegressionOptions options;
  options.methods = {"cqr"};
  const PreparedSet set = prepare(synthetic_set(0, {.rows = 100}), 0);
  EXPECT_THAT(run_regression(set, options).at(0).failed, testing::HasSubstr("one response"));
}

TEST(Regression, SharedNetworksAreTrainedOnce) {
  const CellKey key{"demo", 4};
  ExperimentOptions options;
  options.quick = true;
  const PreparedSet set = prepare_cell(key, options);
  EXPECT_TRUE(set.shared);
  EXPECT_EQ(trained_network(set, Loss::kMse, 1), trained_network(set, Loss::kMse, 1));
  EXPECT_NE(trained_network(set, Loss::kMse, 1), trained_network(set, Loss::kMse, 0));
}

TEST(Regression, AMissingFileIsNamed) {
  EXPECT_THROW(load_regression_set("community", "/nonexistent", 0), Error);
  EXPECT_EQ(load_regression_set("synthetic", "", 0).y.shape[1], 10);
  ExperimentOptions options;
  options.data_dir = "/nonexistent";
  EXPECT_THROW(prepare_cell({"community", 0}, options), MissingData);
}

TEST(Regression, RowsCarryWhatThereIs) {
  RegressionCell cell;
  cell.set = "s";
  cell.method = "m";
  cell.length = std::numeric_limits<double>::infinity();
  Json row = rows_of({cell})[0];
  EXPECT_EQ(row["length"], "inf");
  EXPECT_FALSE(row.contains("detection_coverage"));
  cell.failed = "no";
  row = rows_of({cell})[0];
  EXPECT_EQ(row["failed"], "no");
  EXPECT_FALSE(row.contains("coverage"));
}

}  // namespace
}  // namespace fcp
