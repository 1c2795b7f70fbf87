#include "fcp/evaluate/measures/coverage_gap.h"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
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
