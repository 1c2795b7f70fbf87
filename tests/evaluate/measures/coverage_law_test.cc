#include "fcp/evaluate/measures/coverage_law.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"

#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

TEST(ExpectedCoverage, IsTheBetaRange) {
  const auto expected = expected_coverage(Level(0.1), 1000);
  ASSERT_TRUE(expected);
  EXPECT_NEAR(beta_cdf(expected->low, 901, 100), 0.05, 1e-9);
  EXPECT_NEAR(beta_cdf(expected->high, 901, 100), 0.95, 1e-9);
}

TEST(ExpectedCoverage, DoesNotExistForTooFewRows) {
  EXPECT_FALSE(expected_coverage(Level(0.1), 8));
  EXPECT_TRUE(expected_coverage(Level(0.1), 9));
  EXPECT_FALSE(expected_coverage(Level(0.1), 0));
}

// Every term by the recurrence of Pólya's urn: a trial succeeds with probability
// (a + successes) / (a + b + trials before), which needs no Γ.
std::vector<double> urn_law(size_t m, double a, double b) {
  std::vector<double> law = {1};
  for (size_t t = 0; t < m; ++t) {
    std::vector<double> next(t + 2);
    for (size_t s = 0; s <= t; ++s) {
      const double success = (a + static_cast<double>(s)) / (a + b + static_cast<double>(t));
      next[s + 1] += law[s] * success;
      next[s] += law[s] * (1 - success);
    }
    law = next;
  }
  return law;
}

TEST(BetaBinomial, IsTheLawOfAnUrn) {
  for (const auto& [m, a, b] :
       {std::tuple(1, 9.0, 1.0), {50, 9.0, 1.0}, {300, 451.0, 50.0}, {40, 1.0, 30.0}}) {
    const std::vector<double> law = urn_law(static_cast<size_t>(m), a, b);
    double sum = 0;
    for (size_t x = 0; x < law.size(); ++x) {
      sum += law[x];
      EXPECT_NEAR(beta_binomial_cdf(x, static_cast<size_t>(m), a, b), sum, 1e-11)
          << m << ' ' << a << ' ' << b << ' ' << x;
    }
  }
}

TEST(BetaBinomial, KeepsItsDigitsFarOut) {
  const std::vector<double> law = urn_law(300, 451, 50);
  double sum = 0;
  for (size_t x = 0; x < 200; ++x) {
    sum += law[x];
    EXPECT_NEAR(beta_binomial_cdf(x, 300, 451, 50) / sum, 1, 1e-8) << x;
  }
}

// Of many test rows the law is that of the coverage itself.
TEST(BetaBinomial, OfManyTrialsIsBeta) {
  EXPECT_NEAR(beta_binomial_cdf(8950000, 10000000, 901, 100), beta_cdf(0.895, 901, 100), 1e-4);
}

EvaluationReport report_of(size_t covered, size_t rows) {
  EvaluationReport report;
  report.calibration_rows = 1000;
  report.methods.emplace_back();
  IntervalEvaluation evaluation;
  evaluation.coverage = coverage_of(covered, rows);
  report.methods[0].evaluation = evaluation;
  report.methods[0].radius = 1.5;
  return report;
}

TEST(CoveragePValue, IsSmallWhereTheWorldHasShifted) {
  EXPECT_NEAR(*coverage_p_value(report_of(9000, 10000)), 0.5, 0.1);
  EXPECT_LT(*coverage_p_value(report_of(8000, 10000)), 1e-12);
  EXPECT_GT(*coverage_p_value(report_of(9900, 10000)), 0.999);
  EXPECT_GT(*coverage_p_value(report_of(8, 10)), 0.1);  // ten rows prove nothing
}

TEST(CoveragePValue, NeedsALaw) {
  EvaluationReport report = report_of(8000, 10000);
  report.methods[0].guaranteed = false;
  EXPECT_FALSE(coverage_p_value(report));
  report = report_of(8000, 10000);
  report.methods[0].radius = std::nullopt;
  EXPECT_FALSE(coverage_p_value(report));
  report.methods[0].radius = INFINITY;
  EXPECT_FALSE(coverage_p_value(report));
}

TEST(CoveragePValue, OfGroupsIsTheLeastTimesTheirNumber) {
  EvaluationReport report = report_of(90, 100);
  report.methods[0].radius = std::nullopt;
  report.guaranteed_groups = {{"a", 100, coverage_of(40, 50)},
                              {"b", 100, coverage_of(20, 50)},
                              {"rare", 5, coverage_of(1, 1)},  // infinite: covers always
                              {"unseen", 100}};
  const double worst = *coverage_p_value(Level(0.1), 100, coverage_of(20, 50));
  EXPECT_DOUBLE_EQ(*coverage_p_value(report), 2 * worst);
}

// Under exchangeability the p-value is below t in at most a share t of the worlds. Of 4000 worlds,
// more than 4000 t + 5 √(4000 t) for t = 0.1 (500 where 400 are expected, deviation 19) happens
// with probability below 1e-6.
TEST(CoveragePValue, IsUniformUnderExchangeability) {
  Random random(3);
  const Level level(0.1);
  size_t below = 0;
  for (int world = 0; world < 4000; ++world) {
    std::vector<double> scores(50);
    for (double& score : scores) score = random.uniform();
    const double radius = conformal_quantile(scores, level);
    size_t covered = 0;
    for (int i = 0; i < 80; ++i) covered += random.uniform() <= radius;
    below += *coverage_p_value(level, 50, coverage_of(covered, 80)) <= 0.1;
  }
  EXPECT_LT(below, 500u);
  EXPECT_GT(below, 150u);
}

}  // namespace
namespace {

TEST(Beta, ClosedForms) {
  const double pi = std::acos(-1.0);
  for (const double x : {0.0, 1e-9, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0}) {
    EXPECT_NEAR(beta_cdf(x, 1, 1), x, 1e-14);
    EXPECT_NEAR(beta_cdf(x, 3, 1), x * x * x, 1e-14);
    EXPECT_NEAR(beta_cdf(x, 1, 4), 1 - std::pow(1 - x, 4), 1e-14);
    EXPECT_NEAR(beta_cdf(x, 2, 2), x * x * (3 - 2 * x), 1e-14);
    EXPECT_NEAR(beta_cdf(x, 0.5, 0.5), 2 / pi * std::asin(std::sqrt(x)), 1e-13);
  }
  EXPECT_EQ(beta_cdf(-1, 2, 3), 0);
  EXPECT_EQ(beta_cdf(2, 2, 3), 1);
  EXPECT_THROW(beta_cdf(0.5, 0, 1), Error);
  EXPECT_THROW(beta_quantile(1.5, 1, 1), Error);
}

TEST(Beta, EqualsBinomialSums) {
  for (const size_t n : {1u, 2u, 9u, 40u, 399u, 2000u}) {
    for (size_t k = 1; k <= n; k += 1 + n / 7) {
      for (const double x : {0.001, 0.1, 0.5, 0.9, 0.95, 0.9999}) {
        EXPECT_NEAR(beta_cdf(x, static_cast<double>(k), static_cast<double>(n + 1 - k)),
                    reference::beta_cdf(x, k, n), 1e-11)
            << "n " << n << ", k " << k << ", x " << x;
      }
    }
  }
}

TEST(Beta, QuantileInvertsTheDistribution) {
  for (const double a : {0.5, 1.0, 7.0, 900.0, 9e5}) {
    for (const double b : {0.5, 1.0, 20.0, 1e5}) {
      for (const double p : {1e-7, 0.025, 0.5, 0.975}) {
        const double x = beta_quantile(p, a, b);
        EXPECT_GE(beta_cdf(x, a, b), p);
        EXPECT_LT(beta_cdf(x * (1 - 1e-12), a, b), p) << a << " " << b << " " << p;
      }
    }
  }
  EXPECT_EQ(beta_quantile(0, 2, 3), 0);
  EXPECT_EQ(beta_quantile(1, 2, 3), 1);
}

// Ten million rows: the normal approximation is then good to the sixth digit.
TEST(Beta, LargeParametersAgreeWithTheNormalLaw) {
  const double n = 1e7;
  const double rate = 0.9;
  const double deviation = std::sqrt(rate * (1 - rate) / n);
  EXPECT_NEAR(beta_quantile(0.025, rate * n, (1 - rate) * n), rate - 1.959964 * deviation, 1e-6);
  EXPECT_NEAR(beta_cdf(rate, rate * n, (1 - rate) * n), 0.5, 1e-3);
}

}  // namespace
}  // namespace fcp
