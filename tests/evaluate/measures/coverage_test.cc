#include "fcp/evaluate/measures/coverage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/p_value.h"
#include "fcp/conformal/quantile.h"

#include "tests/evaluate/measures/coverage_curve.h"
#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

using reference::kInfinity;

TEST(Coverage, KnownClopperPearsonIntervals) {
  const Coverage nine = coverage_of(9, 10);  // R: binom.test(9, 10)
  EXPECT_EQ(nine.rate, 0.9);
  EXPECT_NEAR(nine.lower, 0.5549839, 1e-7);
  EXPECT_NEAR(nine.upper, 0.9974714, 1e-7);
  const Coverage none = coverage_of(0, 10);
  EXPECT_EQ(none.lower, 0);
  EXPECT_NEAR(none.upper, 1 - std::pow(0.025, 0.1), 1e-12);
  const Coverage all = coverage_of(10, 10);
  EXPECT_NEAR(all.lower, std::pow(0.025, 0.1), 1e-12);
  EXPECT_EQ(all.upper, 1);
  EXPECT_THROW(coverage_of(0, 0), Error);
  EXPECT_THROW(coverage_of(2, 1), Error);
  EXPECT_THROW(coverage_of(1, 2, 1.0), Error);
}

// At either end of the interval the observed count is exactly as unlikely as the tail allows.
TEST(Coverage, IntervalEndsAreTailsOfTheBinomial) {
  for (const size_t n : {5u, 50u, 400u}) {
    for (size_t c = 1; c < n; c += 1 + n / 6) {
      const Coverage coverage = coverage_of(c, n, 0.99);
      EXPECT_NEAR(reference::beta_cdf(coverage.lower, c, n), 0.005, 1e-10);          // P(X ≥ c)
      EXPECT_NEAR(1 - reference::beta_cdf(coverage.upper, c + 1, n), 0.005, 1e-10);  // P(X ≤ c)
    }
  }
}

TEST(GroupCoverage, CountsEachGroup) {
  GroupCounts counts;
  for (const bool covered : {true, true, false, true}) counts.add(1, covered);
  counts.add(0, true);
  counts.add(-7, false);
  const std::vector<std::string> names = {"north", "south"};
  const std::vector<GroupCoverage> groups = group_coverage(counts, names);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].name, "-7");
  EXPECT_EQ(groups[1].name, "north");
  EXPECT_EQ(groups[2].name, "south");
  EXPECT_EQ(groups[2].coverage.rate, 0.75);
  EXPECT_EQ(groups[2].coverage.upper, coverage_of(3, 4).upper);
  EXPECT_EQ(worst_group(groups).name, "-7");
  EXPECT_THROW(worst_group({}), Error);
}

TEST(CoverageByThirds, LeavesEmptyThirdsOut) {
  const std::vector<double> response = {0, 0, 0, 0, 0, 0, 0, 5, 6, 7};
  const std::vector<uint8_t> covered = {1, 1, 1, 1, 1, 1, 0, 1, 0, 0};
  const std::vector<GroupCoverage> thirds = coverage_by_thirds(response, covered);
  ASSERT_EQ(thirds.size(), 2u);
  EXPECT_EQ(thirds[0].name, "lower third");
  EXPECT_EQ(thirds[0].coverage.rate, 6.0 / 7);
  EXPECT_EQ(thirds[1].name, "upper third");
  EXPECT_EQ(worst_group(thirds).coverage.rate, 1.0 / 3);
}

TEST(CoverageBySize, EqualsCountingRowByRow) {
  Random random(3);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const size_t n = 1 + random.below(50);
    const uint32_t strata = 1 + static_cast<uint32_t>(random.below(5));
    std::vector<double> sizes(n);
    std::vector<uint8_t> covered(n);
    for (size_t i = 0; i < n; ++i) {
      sizes[i] = random.below(8) == 0 ? kInfinity : static_cast<double>(random.below(20));
      covered[i] = static_cast<uint8_t>(random.below(2));
    }
    std::vector<uint32_t> group;  // ⌊strata · #{smaller sizes} / n⌋: equal sizes share one
    for (const double size : sizes) {
      const auto smaller = [&](double other) { return other < size; };
      const auto below = static_cast<size_t>(std::count_if(sizes.begin(), sizes.end(), smaller));
      group.push_back(static_cast<uint32_t>(strata * below / n));
    }
    std::vector<Stratum> expected;
    for (uint32_t g = 0; g < strata; ++g) {
      Stratum stratum{.low = kInfinity, .high = -kInfinity, .coverage = {}};
      size_t rows = 0, hits = 0;
      for (size_t i = 0; i < n; ++i) {
        if (group[i] != g) continue;
        stratum.low = std::min(stratum.low, sizes[i]);
        stratum.high = std::max(stratum.high, sizes[i]);
        ++rows;
        hits += covered[i];
      }
      if (rows == 0) continue;
      stratum.coverage = coverage_of(hits, rows);
      expected.push_back(stratum);
    }
    const std::vector<Stratum> found = coverage_by_size(sizes, covered, strata);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t s = 0; s < found.size(); ++s) {
      ASSERT_EQ(found[s].low, expected[s].low);
      ASSERT_EQ(found[s].high, expected[s].high);
      ASSERT_EQ(found[s].coverage.covered, expected[s].coverage.covered);
      ASSERT_EQ(found[s].coverage.rows, expected[s].coverage.rows);
      ASSERT_EQ(found[s].coverage.lower, expected[s].coverage.lower);
    }
  }
}

TEST(CoverageCurve, CountsScoresUpToTheRadius) {
  Random random(4);
  std::vector<double> calibration(30), test(200);
  for (double& score : calibration) score = static_cast<double>(random.below(15));
  for (double& score : test) score = static_cast<double>(random.below(17));
  test[5] = kInfinity;
  std::vector<Level> levels;
  for (uint64_t a = 1; a < 50; ++a) levels.push_back(Level::fraction(a, 50));
  const std::vector<double> sorted = sorted_scores(calibration);
  const std::vector<CurvePoint> curve = coverage_curve(sorted, test, levels);
  ASSERT_EQ(curve.size(), levels.size());
  for (size_t i = 0; i < levels.size(); ++i) {
    const double radius = conformal_quantile(calibration, levels[i]);
    size_t covered = 0;
    for (const double score : test) covered += score <= radius;
    EXPECT_EQ(curve[i].level, levels[i]);
    EXPECT_EQ(curve[i].radius, radius);
    EXPECT_EQ(curve[i].coverage.covered, covered);
    EXPECT_EQ(curve[i].coverage.rows, test.size());
  }
  EXPECT_EQ(curve.front().radius, kInfinity);  // 1/50 of 31 is less than one score
  EXPECT_EQ(curve.front().coverage.rate, 1);
}

TEST(CoverageCurve, BatchesAddUp) {
  Random random(6);
  std::vector<double> calibration(40), scores(500), p_values(500);
  for (double& score : calibration) score = random.normal();
  for (double& score : scores) score = random.normal();
  for (double& p : p_values) p = random.uniform();
  std::sort(calibration.begin(), calibration.end());
  std::vector<Level> levels;
  for (uint64_t a = 1; a < 20; ++a) levels.push_back(Level::fraction(a, 20));
  const std::vector<double> radii = curve_radii(calibration, levels);
  std::vector<uint64_t> within(levels.size()), above(levels.size());
  for (size_t first = 0; first < scores.size(); first += 120) {
    const size_t count = std::min<size_t>(120, scores.size() - first);
    const auto some = count_scores(std::span(scores).subspan(first, count), radii);
    const auto others = count_p_values(std::span(p_values).subspan(first, count), levels);
    for (size_t i = 0; i < levels.size(); ++i) {
      within[i] += some[i];
      above[i] += others[i];
    }
  }
  const auto by_scores = coverage_curve(calibration, scores, levels);
  const auto by_p_values = coverage_curve(p_values, levels);
  const auto found = curve_of_counts(levels, radii, within, scores.size());
  for (size_t i = 0; i < levels.size(); ++i) {
    EXPECT_EQ(found[i].radius, by_scores[i].radius);
    EXPECT_EQ(found[i].coverage.covered, by_scores[i].coverage.covered);
    EXPECT_EQ(above[i], by_p_values[i].coverage.covered);
  }
  scores[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(count_scores(scores, radii), Error);
}

// For split calibration the p-values say what the scores say, level by level.
TEST(CoverageCurve, FromPValuesIsTheOneFromScores) {
  Random random(5);
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<double> calibration(1 + random.below(60)), test(1 + random.below(80)), p_values;
    for (double& score : calibration) score = static_cast<double>(random.below(15));
    for (double& score : test) score = static_cast<double>(random.below(17));
    test[0] = kInfinity;
    const std::vector<double> sorted = sorted_scores(calibration);
    for (const double score : test) p_values.push_back(conformal_p_value(sorted, score).value());
    std::vector<Level> levels;
    for (uint64_t a = 1; a < 100; ++a) levels.push_back(Level::fraction(a, 100));
    levels.push_back(Level::fraction(1, calibration.size() + 1));
    const std::vector<CurvePoint> expected = coverage_curve(sorted, test, levels);
    const std::vector<CurvePoint> found = coverage_curve(p_values, levels);
    ASSERT_EQ(found.size(), levels.size());
    for (size_t i = 0; i < levels.size(); ++i) {
      EXPECT_EQ(found[i].level, levels[i]);
      EXPECT_FALSE(found[i].radius);
      EXPECT_EQ(found[i].coverage.covered, expected[i].coverage.covered) << levels[i].text();
      EXPECT_EQ(found[i].coverage.rows, test.size());
    }
  }
  EXPECT_THROW(coverage_curve(std::vector<double>{}, std::vector<Level>{Level(0.1)}), Error);
}

}  // namespace
}  // namespace fcp
