#include "fcp/monitoring/confidence_sequence.h"

#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
namespace {

double log_beta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

// S ln θ + F ln(1 − θ), where 0 ln 0 = 0.
double log_likelihood(double hits, double misses, double rate) {
  return (hits > 0 ? hits * std::log(rate) : 0) + (misses > 0 ? misses * std::log1p(-rate) : 0);
}

// The place between `inside` and `outside` at which the likelihood falls to `least`.
double crossing(double hits, double misses, double least, double inside, double outside) {
  for (int i = 0; i < 100; ++i) {
    const double middle = (inside + outside) / 2;
    (log_likelihood(hits, misses, middle) > least ? inside : outside) = middle;
  }
  return outside;
}

}  // namespace

Interval rate_sequence(size_t hits, size_t rows, double delta) {
  if (hits > rows || !(delta > 0 && delta < 1)) {
    fail("found ", hits, " hits of ", rows, " rows at delta ", delta);
  }
  if (rows == 0) return {0, 1};
  const auto s = static_cast<double>(hits), f = static_cast<double>(rows - hits);
  const double least = log_beta(s + 0.5, f + 0.5) - log_beta(0.5, 0.5) + std::log(delta);
  const double middle = s / (s + f);
  return {hits == 0 ? 0 : crossing(s, f, least, middle, 0),
          hits == rows ? 1 : crossing(s, f, least, middle, 1)};
}

}  // namespace fcp
