// The law of coverage, and whether an observed coverage agrees with it.
//
// With n calibration rows of continuous scores the coverage of one predictor is a random number C
// that follows Beta(k, n + 1 − k), k = ⌈(1 − α)(n + 1)⌉. Of m test rows drawn as the calibration
// rows were, the number X that is covered then follows the Beta-binomial law:
//
//   P(X = x) = (m choose x) · B(k + x, n + 1 − k + m − x) / B(k, n + 1 − k)
//
// P(X ≤ the observed number) is a p-value for "the test rows are drawn as the calibration rows
// were". Where scores have ties, coverage is only larger, and the p-value errs on the safe side.
//
// It holds for regions that obey the law with one radius for all rows, and for each group that has
// a radius of its own; the p-value of several groups is the least of theirs times their number.
//
// Reference: Vovk, Conditional Validity of Inductive Conformal Predictors, 2012.
// Tested by tests/evaluate/measures/coverage_law_test.cc.
#pragma once

#include <cstddef>
#include <optional>

#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"

namespace fcp {

struct ExpectedCoverage {
  double low = 0;   // the 5 % quantile of Beta(k, n + 1 − k)
  double high = 1;  // the 95 % quantile
};

// None where n is zero, or too small for the level.
std::optional<ExpectedCoverage> expected_coverage(const Level& level, size_t calibration_rows);

// P(X ≤ x) for X of the Beta-binomial law of m trials; a, b ≥ 1. O(√m) terms where x is far from
// the mean, at most O(m).
double beta_binomial_cdf(size_t x, size_t m, double a, double b);

// The probability of a coverage as low as the observed one, or lower. None where n is too small
// for the level.
std::optional<double> coverage_p_value(const Level& level, size_t calibration_rows,
                                       const Coverage& observed);

// Rows of groups, of which so many tell as much as one independent row (the design effect), as that
// many independent rows.
size_t worth(size_t rows, double rows_alike);
Coverage worth(const Coverage& coverage, double rows_alike);

// The same of the main method of a report, rows counted for what they are worth. None where no law
// holds: regions that promise nothing, radii that differ from row to row other than by group,
// infinite ones, and rows that trained or calibrated the predictor.
std::optional<double> coverage_p_value(const EvaluationReport& report);

// The Beta distribution: the law of the true coverage of a conformal predictor, and the source of
// exact confidence intervals for a proportion.

// I_x(a, b) = P(B ≤ x) for B ~ Beta(a, b); a, b > 0. The error is about 1e-12 for
// a + b up to a few thousand, and 1e-8 for ten million, where the logarithms of Γ limit it.
double beta_cdf(double x, double a, double b);

// The smallest x with beta_cdf(x, a, b) ≥ p, for 0 ≤ p ≤ 1.
double beta_quantile(double p, double a, double b);

}  // namespace fcp
