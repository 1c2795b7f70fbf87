#include "apps/report/charts.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "odd_charts.h"
#include "report_samples.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;
using testing::kInfinity;
using testing::kNaN;

size_t counted(const Json& data) {
  const auto counts = data["counts"].get<std::vector<size_t>>();
  return std::accumulate(counts.begin(), counts.end(), size_t{0}) + data["beyond"].get<size_t>() +
         data["infinite"].get<size_t>();
}

TEST(RobustRange, IsNeverEmpty) {
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<double>> cases = {
      {}, {kNaN}, {kInfinity}, {0}, {5, 5}, {-3}, {1, 1 + 1e-15}, {tiny}, {-huge, huge}, {huge}};
  for (const auto& values : cases) {
    const AxisRange range = robust_range(values, 0);
    EXPECT_TRUE(std::isfinite(range.low) && std::isfinite(range.high));
    EXPECT_LT(range.low, range.high);
  }
}

TEST(RobustRange, CutsAHeavyTailOnly) {
  std::vector<double> values = {kInfinity, kNaN, -kInfinity};
  for (int i = 0; i < 1000; ++i) values.push_back(i);
  EXPECT_EQ(robust_range(values, 0).high, 999);
  values.back() = 1e6;
  EXPECT_LT(robust_range(values, 0).high, 1000);
}

TEST(LengthChart, CountsEveryLength) {
  for (const auto& lengths : testing::odd_samples()) {
    for (double mean : {0.0, 1.0, kInfinity, std::numeric_limits<double>::max()}) {
      const std::vector<MethodMean> means = {{"nested", mean}, {"residual", 2}};
      const Json data = length_chart(lengths, means).data;
      const bool known = lengths.empty() || !std::isnan(lengths[0]);
      EXPECT_EQ(counted(data), known ? lengths.size() : 0);
      EXPECT_LT(data["low"].get<double>(), data["high"].get<double>());
    }
  }
  const Json data = length_chart(std::vector<double>{1, 2, kInfinity, kInfinity}, {}).data;
  EXPECT_EQ(data["infinite"], 2);
}

TEST(SizeChart, HasOneBarForEachOfAFewSizes) {
  const std::vector<size_t> sizes = {3, 20, 0, 7, 0, 0, 0, 0, 0, 0, 0};
  const Json data = size_chart(sizes, {}).data;
  EXPECT_EQ(data["low"], -0.5);
  EXPECT_EQ(data["counts"], (Json{3, 20, 0, 7, 0}));
}

TEST(SizeChart, PutsManySizesIntoABarAndLosesNone) {
  std::vector<size_t> sizes(1001, 0);
  size_t rows = 0;
  for (size_t size = 1; size <= 400; ++size) rows += sizes[size] = 1 + size % 5;
  const Json data = size_chart(sizes, {}).data;
  EXPECT_EQ(counted(data), rows);
  EXPECT_LE(data["counts"].size(), 36u);
  EXPECT_EQ(data["low"], 0.5);  // 400 sizes in bars of 12
  EXPECT_EQ((data["high"].get<double>() - 0.5) / static_cast<double>(data["counts"].size()), 12);
}

TEST(SizeChart, ShowsNoSizeBeyondTheNumberOfClasses) {
  std::vector<size_t> sizes(21, 0);
  sizes[20] = 9;
  const Json data = size_chart(sizes, {}).data;
  EXPECT_EQ(data["low"], 15.5);
  EXPECT_EQ(data["high"], 20.5);
}

TEST(SizeChart, CountsWhatLiesFarOut) {
  std::vector<size_t> sizes(1001, 0);
  sizes[1] = 900;
  sizes[2] = 99;
  sizes[1000] = 1;
  EXPECT_EQ(size_chart(sizes, {}).data["beyond"], 1);
}

TEST(ScoreChart, HasRoomForTheRadius) {
  const std::vector<double> scores = {1, 2, 3};
  EXPECT_EQ(score_chart(scores, 9).data["high"], 9);
  EXPECT_EQ(score_chart(scores, kInfinity).data["radius"], "inf");
  EXPECT_FALSE(score_chart(scores, std::nullopt).data.contains("radius"));
}

EvaluationReport report_of(const std::vector<IntervalExample>& rows) {
  EvaluationReport report = testing::sample_report(50, 5);
  report.examples.clear();
  for (const IntervalExample& row : rows) {
    const bool covered = row.lower <= row.truth && row.truth <= row.upper;
    report.examples.push_back({.covered = covered, .region = row});
  }
  return report;
}

TEST(Sample, LeavesOutWhatIsUndefined) {
  const Json sample = sample_json(report_of({{kNaN, 0, 1, 0}, {0, -kInfinity, 1, 0}}));
  ASSERT_EQ(sample[0]["rows"].size(), 1u);
  EXPECT_EQ(sample[0]["rows"][0]["lower"], Json::array({"-inf"}));
  EXPECT_TRUE(sample_json(report_of({})).empty());
}

TEST(Sample, ThinsManyRows) {
  std::vector<IntervalExample> rows(5000);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto x = static_cast<double>(rows.size() - 1 - i);
    rows[i] = {x, x - 1, x + 1, x};
  }
  const Json sample = sample_json(report_of(rows))[0]["rows"];
  ASSERT_EQ(sample.size(), 300u);
  EXPECT_EQ(sample[0]["prediction"], 0);
  EXPECT_EQ(sample[299]["prediction"], 4999);
}

// The axis has room for the intervals at α = 0.05 and more, those of smaller ones may leave it.
TEST(Sample, HasRoomForUsualLevels) {
  IntervalExample row{1, 0, 2, 1};
  row.at_levels = {{{-100, 100}, true}, {{-5, 7}, true}, {{0, 2}, true}};
  EvaluationReport report = report_of({row, row, row});
  for (const char* alpha : {"0.01", "0.05", "0.1"}) {
    report.methods[0].levels.push_back({Level::parse(alpha), coverage_of(1, 2)});
  }
  const Json axis = sample_json(report)[0]["interval_axis"];
  EXPECT_GT(axis[1], 7);
  EXPECT_LT(axis[1], 10);
  report.methods[0].levels.clear();
  EXPECT_GT(sample_json(report)[0]["interval_axis"][1], 100);
}

TEST(CoverageCurveChart, ShowsTheExpectedBandOnlyWhereItHolds) {
  const std::vector<CurvePoint> points = {{Level(0.1), 1, coverage_of(90, 100)},
                                          {Level(0.0001), 1, coverage_of(100, 100)}};
  const std::vector<CurveSeries> series = {{"nested", points}, {"residual", points}};
  EXPECT_FALSE(coverage_curve_chart(series, 0).data["curve"][0].contains("expected_low"));
  const Json data = coverage_curve_chart(series, 100).data;
  EXPECT_LT(data["curve"][0]["expected_low"], 0.9);
  EXPECT_GT(data["curve"][0]["expected_high"], 0.9);
  EXPECT_EQ(data["curve"][1]["expected_low"], 1);  // too few rows: all are covered
  EXPECT_FALSE(data["others"][0]["curve"][0].contains("expected_low"));
}

TEST(ExperimentCharts, HoldWhatTheyAreGiven) {
  const Json comparison =
      comparison_chart({"Lengths", "x", {"bio", "bike"}, {{"nested", {0.9, kNaN}, {}}}, 1}).data;
  EXPECT_EQ(comparison["rows"], (Json{"bio", "bike"}));
  EXPECT_EQ(comparison["series"][0]["values"], (Json{0.9, nullptr}));
  EXPECT_EQ(comparison["reference"], 1);
  const Json curves = curve_chart({"C", "n", "bias", {{"b", {{10, kInfinity}}, false}}, true}).data;
  EXPECT_EQ(curves["lines"][0]["points"][0], (Json{10, "inf"}));
  EXPECT_EQ(curves["lines"][0]["joined"], false);
  EXPECT_EQ(curves["logarithmic"], true);
}

}  // namespace
}  // namespace fcp
