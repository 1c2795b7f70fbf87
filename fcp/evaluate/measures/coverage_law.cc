#include "fcp/evaluate/measures/coverage_law.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"

namespace fcp {
namespace {

double log_beta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

double beta_binomial_pmf(double x, double m, double a, double b) {
  const double choose = -std::log(m + 1) - log_beta(x + 1, m - x + 1);
  return std::exp(choose + log_beta(a + x, b + m - x) - log_beta(a, b));
}

// Σ of the law's terms from x downwards. P(x − 1)/P(x) = x (b + m − x) / ((m − x + 1)(a + x − 1));
// once the terms fall they fall faster and faster, so the rest is less than the last one seen over
// the relative error, and is left out.
double lower_tail(double x, double m, double a, double b) {
  double term = beta_binomial_pmf(x, m, a, b);
  double sum = term;
  for (; x > 0; --x) {
    const double ratio = x * (b + m - x) / ((m - x + 1) * (a + x - 1));
    term *= ratio;
    sum += term;
    if (ratio < 1 && term < 1e-18 * sum * (1 - ratio)) break;
  }
  return std::min(1.0, sum);
}

}  // namespace

std::optional<ExpectedCoverage> expected_coverage(const Level& level, size_t calibration_rows) {
  const size_t rank = conformal_rank(level, calibration_rows);
  if (rank > calibration_rows) return std::nullopt;
  const auto a = static_cast<double>(rank);
  const auto b = static_cast<double>(calibration_rows + 1 - rank);
  return ExpectedCoverage{beta_quantile(0.05, a, b), beta_quantile(0.95, a, b)};
}

double beta_binomial_cdf(size_t x, size_t m, double a, double b) {
  if (!(a >= 1) || !(b >= 1)) fail("Beta-binomial(", a, ", ", b, ") needs parameters from 1 on");
  if (x >= m) return 1;
  const auto count = static_cast<double>(x), trials = static_cast<double>(m);
  if (count <= trials * a / (a + b)) return lower_tail(count, trials, a, b);
  // The number of misses follows the law with a and b exchanged.
  return 1 - lower_tail(trials - count - 1, trials, b, a);
}

std::optional<double> coverage_p_value(const Level& level, size_t calibration_rows,
                                       const Coverage& observed) {
  const size_t rank = conformal_rank(level, calibration_rows);
  if (rank > calibration_rows) return std::nullopt;
  return beta_binomial_cdf(observed.covered, observed.rows, static_cast<double>(rank),
                           static_cast<double>(calibration_rows + 1 - rank));
}

size_t worth(size_t rows, double rows_alike) {
  return static_cast<size_t>(std::llround(static_cast<double>(rows) / rows_alike));
}

Coverage worth(const Coverage& coverage, double rows_alike) {
  if (rows_alike == 1) return coverage;
  const size_t rows = std::max<size_t>(1, worth(coverage.rows, rows_alike));
  return coverage_of(std::min(rows, worth(coverage.covered, rows_alike)), rows);
}

std::optional<double> coverage_p_value(const EvaluationReport& report) {
  const MethodResult& main = report.methods.at(0);
  const bool known =
      report.origin == RowsOrigin::kCalibrationRows || report.origin == RowsOrigin::kTrainingRows;
  if (!main.guaranteed || known) return std::nullopt;
  if (main.radius) {
    if (std::isinf(*main.radius)) return std::nullopt;
    return coverage_p_value(report.level, worth(report.calibration_rows, report.rows_alike),
                            worth(main.coverage(), report.rows_alike));
  }
  std::optional<double> least;
  size_t groups = 0;
  for (const GuaranteedGroup& group : report.guaranteed_groups) {
    if (!group.coverage) continue;
    const auto p = coverage_p_value(report.level, worth(group.calibration_rows, report.rows_alike),
                                    worth(*group.coverage, report.rows_alike));
    if (!p) continue;
    ++groups;
    least = std::min(least.value_or(1), *p);
  }
  if (least) *least = std::min(1.0, *least * static_cast<double>(groups));
  return least;
}

// Idea: I_x(a, b) by its continued fraction, which converges fast for x < (a + 1)/(a + b + 2);
// beyond, the symmetry I_x(a, b) = 1 − I_{1−x}(b, a) leads back there. The quantile is found by
// bisection, because the distribution function is monotone and a bracket never fails.
//
//   I_x(a, b) = x^a (1 − x)^b / (a B(a, b)) · 1/(1 + d1/(1 + d2/(1 + …)))
//   d_{2m}   =  m (b − m) x / ((a + 2m − 1)(a + 2m))
//   d_{2m+1} = −(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1))
//
// Cost: O(√max(a, b)) terms. Reference: DLMF 8.17.22; evaluation by the method of Lentz.
// Tested by tests/evaluate/measures/coverage_law_test.cc.

namespace {

double away_from_zero(double value) {
  constexpr double kTiny = 1e-300;
  return std::abs(value) < kTiny ? kTiny : value;
}

// 1/(1 + d1/(1 + d2/(1 + …)))
double continued_fraction(double x, double a, double b) {
  const int max_terms = 1000 + 100 * static_cast<int>(std::sqrt(std::max(a, b)));
  double c = 1;
  double d = 0;
  double result = 1;
  for (int term = 1; term <= max_terms; ++term) {
    const int m = term / 2;
    const double numerator = term % 2 == 0
                                 ? m * (b - m) * x / ((a + 2.0 * m - 1) * (a + 2.0 * m))
                                 : -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1));
    d = 1 / away_from_zero(1 + numerator * d);
    c = away_from_zero(1 + numerator / c);
    const double factor = c * d;
    result *= factor;
    if (std::abs(factor - 1) < 4e-16) break;
  }
  return 1 / result;
}

}  // namespace

double beta_cdf(double x, double a, double b) {
  if (!(a > 0) || !(b > 0)) fail("Beta(", a, ", ", b, ") needs two positive parameters");
  if (std::isnan(x)) fail("Beta(", a, ", ", b, ") was asked for its value at NaN");
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta_cdf(1 - x, b, a);
  const double log_front = a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) -
                           std::lgamma(a) - std::lgamma(b) - std::log(a);
  return std::exp(log_front) * continued_fraction(x, a, b);
}

double beta_quantile(double p, double a, double b) {
  if (!(p >= 0 && p <= 1)) fail("the Beta quantile of ", p, " does not exist; expected 0 to 1");
  if (p == 0) return 0;
  if (p == 1) return 1;
  double low = 0;
  double high = 1;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (beta_cdf(middle, a, b) >= p ? high : low) = middle;
  }
}

}  // namespace fcp
