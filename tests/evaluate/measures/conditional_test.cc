#include "fcp/evaluate/measures/conditional.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"

namespace fcp {
namespace {

struct CoverageTable {
  std::vector<double> x;
  std::vector<uint8_t> covered;
};

// Rows of so many normal columns, covered with the chance that `rate` says of the row.
template <typename Rate>
CoverageTable drawn_table(uint64_t seed, size_t rows, size_t columns, const Rate& rate) {
  Random random(seed);
  CoverageTable table;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t d = 0; d < columns; ++d) table.x.push_back(random.normal());
    table.covered.push_back(random.uniform() < rate(&table.x[i * columns]) ? 1 : 0);
  }
  return table;
}

double even_rate(const double*) { return 0.9; }

// 10 % of the rows, those with x_0 > 1.2816, are covered half of the time; all together 90 %.
double slab_rate(const double* x) { return x[0] > 1.2815516 ? 0.5 : (0.9 - 0.05) / 0.9; }

// Slabs found on a half and measured on the other: without a slab to find, coverage is what it is
// everywhere. The measured rows are about 400: five deviations of 0.015 are a chance of 6e-7.
TEST(WorstSlab, IsTheCoverageWhereCoverageIsEven) {
  const CoverageTable table = drawn_table(1, 4000, 3, even_rate);
  const Coverage worst = worst_slab(table.x, 3, table.covered, {.directions = 200}).value();
  EXPECT_NEAR(worst.rate, 0.9, 5 * std::sqrt(0.09 / static_cast<double>(worst.rows)));
}

TEST(WorstSlab, FindsTheSlabThatIsThere) {
  const CoverageTable table = drawn_table(2, 6000, 1, slab_rate);
  const Coverage worst = worst_slab(table.x, 1, table.covered, {.directions = 10}).value();
  EXPECT_NEAR(worst.rate, 0.5, 5 * 0.5 / std::sqrt(static_cast<double>(worst.rows)) + 0.02);
  EXPECT_NEAR(static_cast<double>(worst.rows) / 6000, 0.1, 0.03);
  const CoverageTable wide = drawn_table(3, 6000, 3, slab_rate);
  EXPECT_LT(worst_slab(wide.x, 3, wide.covered, {.directions = 500})->rate, 0.68);
}

TEST(WorstSlab, StretchesAgainstAllOfThem) {
  Random random(4);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<uint8_t> z(1 + random.below(40));
    for (uint8_t& one : z) one = random.below(4) > 0 ? 1 : 0;
    const size_t least = 1 + random.below(z.size());
    double smallest = 2;
    for (size_t begin = 0; begin < z.size(); ++begin) {
      double sum = 0;
      for (size_t end = begin + 1; end <= z.size(); ++end) {
        sum += z[end - 1];
        if (end - begin < least) continue;
        smallest = std::min(smallest, sum / static_cast<double>(end - begin));
      }
    }
    const Stretch found = least_mean_stretch(z, least);
    EXPECT_NEAR(found.mean, smallest, 1e-9);
    EXPECT_GE(found.end - found.begin, least);
    double sum = 0;
    for (size_t i = found.begin; i < found.end; ++i) sum += z[i];
    EXPECT_NEAR(sum / static_cast<double>(found.end - found.begin), found.mean, 1e-9);
  }
}

TEST(WorstSlab, SaysWhatIsTooFew) {
  const CoverageTable table = drawn_table(5, 15, 2, even_rate);
  EXPECT_FALSE(worst_slab(table.x, 2, table.covered));
  EXPECT_THROW(worst_slab(table.x, 3, table.covered), Error);
  EXPECT_THROW(worst_slab({}, 0, table.covered), Error);
}

// With few rows the slab that one half gives often holds no row of the other: that is no error.
TEST(WorstSlab, IsAbsentWhereNoRowLiesInTheSlab) {
  size_t absent = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const CoverageTable table = drawn_table(seed, 20, 3, even_rate);
    const std::optional<Coverage> worst =
        worst_slab(table.x, 3, table.covered, {.directions = 20, .seed = seed});
    absent += worst ? 0 : 1;
    if (worst) {
      EXPECT_GT(worst->rows, 0u);
    }
  }
  EXPECT_GT(absent, 0u);
}

// E (rate − 0.9)² = 0.1 · 0.4² + 0.9 · (0.0444…)² = 0.01778; the tree sees nearly all of it.
TEST(ExcessRisk, IsTheVarianceOfTheRate) {
  const CoverageTable table = drawn_table(6, 8000, 2, slab_rate);
  const ExcessRisk risk = excess_risk(table.x, 2, table.covered, Level(0.1)).value();
  EXPECT_NEAR(risk.value, 0.01778, 5 * risk.standard_error + 0.001);
  EXPECT_GT(risk.value, 5 * risk.standard_error);
  const CoverageTable even = drawn_table(7, 8000, 2, even_rate);
  const ExcessRisk none = excess_risk(even.x, 2, even.covered, Level(0.1)).value();
  EXPECT_NEAR(none.value, 0, 5 * none.standard_error + 0.001);
  EXPECT_LT(none.value, 0.001);
}

TEST(ExcessRisk, TreesSplitWhereTheRateChanges) {
  CoverageTable table;
  std::vector<size_t> rows;
  for (size_t i = 0; i < 200; ++i) {
    table.x.push_back(static_cast<double>(i % 2));
    table.x.push_back(static_cast<double>(i));
    table.covered.push_back(i < 100 ? 1 : 0);
    rows.push_back(i);
  }
  const CoverageTree tree(table.x, 2, table.covered, rows, 0.5);
  const std::vector<double> low = {0, 50}, high = {1, 150};
  EXPECT_GT(tree.predict(low), 0.8);
  EXPECT_LT(tree.predict(high), 0.2);
  EXPECT_THROW(excess_risk(table.x, 2, std::span(table.covered).first(40), Level(0.1)), Error);
  EXPECT_FALSE(
      excess_risk(std::span(table.x).first(80), 2, std::span(table.covered).first(40), Level(0.1)));
}

TEST(LengthMissCorrelation, KnownCases) {
  const std::vector<double> lengths = {1, 1, 3, 3, kInfinity};
  EXPECT_DOUBLE_EQ(length_miss_correlation(lengths, std::vector<uint8_t>{1, 1, 0, 0, 1}), 1);
  EXPECT_DOUBLE_EQ(length_miss_correlation(lengths, std::vector<uint8_t>{0, 0, 1, 1, 1}), -1);
  EXPECT_DOUBLE_EQ(length_miss_correlation(lengths, std::vector<uint8_t>{0, 1, 0, 1, 1}), 0);
  EXPECT_EQ(length_miss_correlation(lengths, std::vector<uint8_t>{1, 1, 1, 1, 0}), 0);
  EXPECT_THROW(length_miss_correlation(lengths, std::vector<uint8_t>{1}), Error);
}

TEST(IntervalStability, KnownCases) {
  const std::vector<double> low = {0, 0, -kInfinity, 5}, high = {2, 2, kInfinity, 4};
  const std::vector<double> other_low = {1, 2, -kInfinity, 5}, other_high = {3, 4, kInfinity, 4};
  const std::vector<RefitIntervals> same = {{low, high}, {low, high}};
  EXPECT_DOUBLE_EQ(interval_stability(same), 1);
  const std::vector<RefitIntervals> two = {{low, high}, {other_low, other_high}};
  EXPECT_DOUBLE_EQ(interval_stability(two), (1.0 / 3 + 0 + 1 + 1) / 4);
  EXPECT_THROW(interval_stability(std::span(two).first(1)), Error);
}

}  // namespace
namespace {

struct GapTable {
  std::vector<double> x;
  std::vector<uint8_t> covered;
};

// Rows around 10 points of the plane far from each other, covered with the chance of their point.
GapTable clustered_table(uint64_t seed, size_t rows, const std::vector<double>& rates) {
  Random random(seed);
  GapTable table;
  for (size_t i = 0; i < rows; ++i) {
    const size_t part = i % rates.size();
    table.x.push_back(100.0 * static_cast<double>(part) + random.normal());
    table.x.push_back(100.0 * static_cast<double>(part * part % 7) + random.normal());
    table.covered.push_back(random.uniform() < rates[part] ? 1 : 0);
  }
  return table;
}

TEST(CoverageGap, ByHand) {
  const CoverageGap gap = gap_of_parts({{10, 9}, {0, 0}, {30, 24}}, Level(0.1));
  ASSERT_EQ(gap.parts.size(), 2u);
  EXPECT_NEAR(gap.gap, 0.25 * 0 + 0.75 * 0.1, 1e-12);
  EXPECT_NEAR(gap.squared_error, 0.75 * 0.01, 1e-12);
  EXPECT_NEAR(gap.by_chance, 0.09 * 2 / 40, 1e-12);
}

// Every part holds rows of one point alone (a point may have several parts), so that the parts tell
// the rates of the points: half of them 0.8, half 1.
TEST(CoverageGap, PartsAreRowsThatLieTogether) {
  const GapTable table = clustered_table(1, 5000, {0.8, 1, 0.8, 1, 0.8, 1, 0.8, 1, 0.8, 1});
  const std::vector<size_t> part_of = k_means(table.x, 2, 30, 0);
  std::vector<std::set<size_t>> points(30);
  for (size_t i = 0; i < part_of.size(); ++i) points[part_of[i]].insert(i % 10);
  size_t mixed = 0;
  for (const std::set<size_t>& part : points) mixed += part.size() > 1 ? 1 : 0;
  EXPECT_LE(mixed, 2u);
  const CoverageGap gap = coverage_gap(table.x, 2, table.covered, Level(0.1)).value();
  EXPECT_EQ(gap.parts.size(), 50u);
  EXPECT_NEAR(gap.gap, 0.1, 0.02);
  EXPECT_NEAR(gap.squared_error, 0.01, 0.004);
}

// Where coverage is 1 − α everywhere, the squared error is what chance makes it: N times it, over
// α(1 − α), is near chi-square of 50 degrees, which exceeds 128 with a chance below 1e-6 and has
// is below 14 with less than that.
TEST(CoverageGap, ByChanceWhereCoverageIsEven) {
  const GapTable table = clustered_table(2, 5000, std::vector<double>(10, 0.9));
  const CoverageGap gap = coverage_gap(table.x, 2, table.covered, Level(0.1)).value();
  EXPECT_NEAR(gap.by_chance, 0.09 * 50 / 5000, 1e-12);
  EXPECT_LT(gap.squared_error / gap.by_chance, 128.0 / 50);
  EXPECT_GT(gap.squared_error / gap.by_chance, 14.0 / 50);
}

TEST(CoverageGap, TakesMissingNumbersAndSaysWhatIsTooFew) {
  GapTable table = clustered_table(3, 200, {0.9, 0.9});
  table.x[0] = std::numeric_limits<double>::quiet_NaN();
  table.x[5] = std::numeric_limits<double>::infinity();
  const CoverageGap gap = coverage_gap(table.x, 2, table.covered, Level(0.1)).value();
  size_t rows = 0;
  for (const CoveragePart& part : gap.parts) rows += part.rows;
  EXPECT_EQ(rows, 200u);
  table.x.resize(2 * 99);
  table.covered.resize(99);
  EXPECT_FALSE(coverage_gap(table.x, 2, table.covered, Level(0.1)));
  EXPECT_THROW(coverage_gap(table.x, 3, table.covered, Level(0.1)), Error);
}

}  // namespace
}  // namespace fcp
