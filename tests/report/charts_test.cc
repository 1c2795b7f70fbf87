#include "apps/report/charts.h"

#include <limits>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "report_samples.h"
#include "svg_numbers.h"

namespace fcp {
namespace {

using testing::count_of;
using testing::expect_drawable;
using testing::kInfinity;
using testing::kNaN;

const double kHuge = std::numeric_limits<double>::max();

std::vector<std::vector<double>> odd_samples() {
  return {{},
          {1},
          {kInfinity},
          {-kInfinity, kInfinity},
          {kInfinity, 1, 2},
          {3, 3, 3, 3},
          {0, 0},
          {-kHuge, kHuge},
          {kHuge},
          {std::numeric_limits<double>::denorm_min()},
          {kNaN},
          {1, 1, 1, 1, 1e9}};
}

TEST(LengthChart, DrawsAnything) {
  for (const auto& lengths : odd_samples()) {
    for (double mean : {0.0, 1.0, kInfinity, kHuge}) {
      const std::vector<MethodMean> means = {{"nested", mean}, {"residual", 2}};
      expect_drawable(length_chart(lengths, means));
    }
  }
}

TEST(LengthChart, CountsWhatItCannotDraw) {
  const std::string svg = length_chart(std::vector<double>{1, 2, kInfinity, kInfinity}, {});
  EXPECT_NE(svg.find("2 infinite, not drawn"), std::string::npos);
}

TEST(LengthChart, BarsHoldEveryFiniteValue) {
  std::vector<double> lengths;
  for (int i = 0; i < 1000; ++i) lengths.push_back(i % 37);
  const std::string svg = length_chart(lengths, {});
  size_t total = 0;
  const std::regex tip("<title>[^<]* to [^<]*: ([0-9]+)</title>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), tip), end; it != end; ++it) {
    total += std::stoul((*it)[1]);
  }
  EXPECT_EQ(total, 1000u);
}

// The sizes and counts of the bars, as their tooltips say them.
std::vector<std::pair<std::string, size_t>> size_bars(const std::string& svg) {
  std::vector<std::pair<std::string, size_t>> bars;
  const std::regex tip("<title>size ([^<]*): ([0-9]+)</title>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), tip), end; it != end; ++it) {
    bars.emplace_back((*it)[1], std::stoul((*it)[2]));
  }
  return bars;
}

TEST(SizeChart, DrawsAnything) {
  std::vector<size_t> full(1001, 0);
  full.back() = 50;
  const std::vector<std::vector<size_t>> histograms = {
      {}, {0}, {5}, {0, 1}, {0, 0, 0}, {1, 2, 3}, full, std::vector<size_t>(1001, 7)};
  for (const auto& histogram : histograms) {
    for (double mean : {0.0, 1.5, 700.0, kInfinity, kNaN}) {
      const std::vector<MethodMean> means = {{"lac", mean}, {"aps", 2}};
      expect_drawable(size_chart(histogram, means));
    }
  }
}

TEST(SizeChart, HasOneBarForEachOfAFewSizes) {
  const std::vector<size_t> histogram = {3, 20, 0, 7, 0, 0, 0, 0, 0, 0, 0};
  using Bars = std::vector<std::pair<std::string, size_t>>;
  EXPECT_EQ(size_bars(size_chart(histogram, {})), (Bars{{"0", 3}, {"1", 20}, {"3", 7}}));
}

TEST(SizeChart, PutsManySizesIntoABarAndLosesNone) {
  std::vector<size_t> histogram(1001, 0);
  size_t rows = 0;
  for (size_t size = 1; size <= 400; ++size) rows += histogram[size] = 1 + size % 5;
  const auto bars = size_bars(size_chart(histogram, {}));
  size_t drawn = 0;
  for (const auto& [sizes, count] : bars) drawn += count;
  EXPECT_EQ(drawn, rows);
  EXPECT_LE(bars.size(), 36u);
  EXPECT_EQ(bars.front().first, "1–12");  // 400 sizes in bars of 12
}

TEST(SizeChart, ShowsNoSizeBeyondTheNumberOfClasses) {
  std::vector<size_t> histogram(21, 0);
  histogram[20] = 9;
  const std::string svg = size_chart(histogram, {});
  EXPECT_NE(svg.find(">16</text>"), std::string::npos);
  EXPECT_EQ(svg.find(">21</text>"), std::string::npos);
}

TEST(SizeChart, CountsWhatLiesFarOut) {
  std::vector<size_t> histogram(1001, 0);
  histogram[1] = 900;
  histogram[2] = 99;
  histogram[1000] = 1;
  EXPECT_NE(size_chart(histogram, {}).find("1 beyond the axis"), std::string::npos);
}

TEST(ScoreChart, DrawsAnything) {
  for (const auto& scores : odd_samples()) {
    expect_drawable(score_chart(scores, std::nullopt));
    for (double radius : {-1.0, 0.0, 2.0, kHuge, kInfinity, -kInfinity}) {
      expect_drawable(score_chart(scores, radius));
    }
  }
}

TEST(ScoreChart, SaysThatTheRadiusIsInfinite) {
  const std::string svg = score_chart(std::vector<double>{1, 2, 3}, kInfinity);
  EXPECT_NE(svg.find("radius ∞: beyond every score"), std::string::npos);
  EXPECT_EQ(count_of(svg, "bar outside"), 0u);
  EXPECT_GT(count_of(score_chart(std::vector<double>{1, 2, 3}, 1.5), "bar outside"), 0u);
}

std::string drawn_chart(const std::vector<IntervalExample>& rows, const std::string& response) {
  std::vector<Example> examples;
  for (const IntervalExample& row : rows) {
    const bool covered = row.lower <= row.truth && row.truth <= row.upper;
    examples.push_back({.covered = covered, .region = row});
  }
  return interval_chart(drawn_examples(examples), response);
}

TEST(IntervalChart, DrawsAnything) {
  const std::vector<std::vector<IntervalExample>> samples = {
      {},
      {{1, 0, 2, 1}},
      {{1, 1, 1, 1}},
      {{0, -kInfinity, kInfinity, 0}},
      {{0, 3, 2, 5}},
      {{1, 0, 2, 1}, {2, -kInfinity, 3, 9}, {3, kInfinity, -kInfinity, 0}},
      {{-kHuge, -kHuge, kHuge, kHuge}},
      {{kNaN, 0, 1, 0}, {0, -1, 1, 0}}};
  for (const auto& rows : samples) expect_drawable(drawn_chart(rows, "y"));
}

TEST(IntervalChart, MarksTheMisses) {
  const std::vector<IntervalExample> rows = {{1, 0, 2, 1}, {2, 1, 3, 9}, {3, 2, 4, 3}};
  const std::string svg = drawn_chart(rows, "<y>");
  EXPECT_NE(svg.find("truth outside: 1 of 3 rows"), std::string::npos);
  EXPECT_EQ(count_of(svg, "interval missed"), 1u);
  EXPECT_EQ(svg.find("<y>"), std::string::npos);
}

TEST(IntervalChart, ThinsLargeSamples) {
  std::vector<IntervalExample> rows(5000);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto x = static_cast<double>(i);
    rows[i] = {x, x - 1, x + 1, x};
  }
  const std::string svg = drawn_chart(rows, "y");
  EXPECT_EQ(count_of(svg, "<line class=\"interval\"") - 1, 300u);  // one is in the legend
  EXPECT_NE(svg.find("prediction 0,"), std::string::npos);
  EXPECT_NE(svg.find("prediction 4,999,"), std::string::npos);
}

// The axis has room for the intervals of the level that it is asked to have room for, and says to a
// script what it shows.
TEST(IntervalChart, HasRoomForOtherLevels) {
  IntervalExample row{1, 0, 2, 1};
  row.at_levels = {{{-100, 100}, true}, {{-5, 7}, true}, {{0, 2}, true}};
  const std::vector<Example> examples(3, {.name = "row", .covered = true, .region = row});
  const auto top_of = [&](size_t level) {
    const std::string plot =
        testing::attribute_values(interval_chart(examples, "y", level), "data-plot").at(0);
    return std::stod(plot.substr(plot.rfind(' ')));
  };
  EXPECT_GT(top_of(0), 100);
  EXPECT_GT(top_of(1), 7);
  EXPECT_LT(top_of(1), 10);
  EXPECT_LT(top_of(3), 4);
}

TEST(CoverageCurveChart, DrawsAnything) {
  expect_drawable(coverage_curve_chart({}, 0));
  const CurvePoint one{Level(0.1), 1, coverage_of(9, 10)};
  const CurvePoint all{Level(0.5), kInfinity, coverage_of(10, 10)};
  const CurvePoint none{Level(0.9), 0, coverage_of(0, 10)};
  for (size_t n : {0, 1, 100}) {
    for (const std::vector<CurvePoint>& points :
         {std::vector<CurvePoint>{}, {one}, {one, one}, {none, all, one}}) {
      const std::vector<CurveSeries> series = {{"nested", points}, {"residual", {&one, 1}}};
      expect_drawable(coverage_curve_chart(series, n));
    }
  }
}

TEST(CoverageCurveChart, ShowsTheExpectedBandOnlyWhereItHolds) {
  const std::vector<CurvePoint> points = {{Level(0.1), 1, coverage_of(90, 100)},
                                          {Level(0.2), 1, coverage_of(80, 100)}};
  const std::vector<CurveSeries> series = {{"nested", points}};
  EXPECT_EQ(count_of(coverage_curve_chart(series, 0), "class=\"expected\""), 0u);
  EXPECT_EQ(count_of(coverage_curve_chart(series, 100), "class=\"expected\""), 2u);
}

TEST(CoveragePartsChart, DrawsAnything) {
  expect_drawable(coverage_parts_chart({"t", {}, Level(0.1)}));
  expect_drawable(coverage_parts_chart({"t", {{"a", coverage_of(0, 1)}}, Level(0.1)}));
  expect_drawable(coverage_parts_chart({"t", {{"a", coverage_of(1, 1)}}, Level(0.999)}));
}

TEST(CoveragePartsChart, MarksPartsBelowTheTargetByShape) {
  const CoverageParts parts{
      "t", {{"fine", coverage_of(90, 100)}, {"poor", coverage_of(50, 100)}}, Level(0.1)};
  const std::string svg = coverage_parts_chart(parts);
  EXPECT_EQ(count_of(svg, "<path class=\"dot miss\""), 2u);  // the part and the legend
  EXPECT_EQ(count_of(svg, "<circle class=\"dot series0\""), 1u);
}

TEST(CoveragePartsChart, KeepsTheWorstOfMany) {
  CoverageParts parts{"t", {}, Level(0.1)};
  for (size_t i = 0; i < 100; ++i) {
    parts.parts.push_back({"part" + std::to_string(i), coverage_of(i, 100)});
  }
  const std::string svg = coverage_parts_chart(parts);
  expect_drawable(svg);
  EXPECT_NE(svg.find("the worst 24 of 100"), std::string::npos);
  EXPECT_NE(svg.find(">part0<"), std::string::npos);
  EXPECT_EQ(svg.find(">part24<"), std::string::npos);
}

TEST(CoveragePartsChart, ShortensLongNamesBetweenCharacters) {
  const std::string name = "größer als alles, was bisher gemessen wurde";
  const std::string svg = coverage_parts_chart({"t", {{name, coverage_of(9, 10)}}, Level(0.1)});
  EXPECT_NE(svg.find("größer als alles, w…<"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>" + name), std::string::npos);
}

}  // namespace
}  // namespace fcp
