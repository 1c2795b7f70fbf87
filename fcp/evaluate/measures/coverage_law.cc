#include "fcp/evaluate/measures/coverage_law.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/conformal/rank.h"
#include "fcp/evaluate/measures/beta.h"

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

}  // namespace fcp
