// Idea: I_x(a, b) by its continued fraction, which converges fast for x < (a + 1)/(a + b + 2);
// beyond, the symmetry I_x(a, b) = 1 − I_{1−x}(b, a) leads back there. The quantile is found by
// bisection, because the distribution function is monotone and a bracket never fails.
//
//   I_x(a, b) = x^a (1 − x)^b / (a B(a, b)) · 1/(1 + d1/(1 + d2/(1 + …)))
//   d_{2m}   =  m (b − m) x / ((a + 2m − 1)(a + 2m))
//   d_{2m+1} = −(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1))
//
// Cost: O(√max(a, b)) terms. Reference: DLMF 8.17.22; evaluation by the method of Lentz.
// Tested by tests/evaluate/measures/beta_test.cc.
#include "fcp/evaluate/measures/beta.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
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
