#include "fcp/evaluate/measures/beta.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/reference/conformal_reference.h"

namespace fcp {
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
