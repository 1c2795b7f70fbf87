// The Beta distribution: the law of the true coverage of a conformal predictor, and the source of
// exact confidence intervals for a proportion.
#pragma once

namespace fcp {

// I_x(a, b) = P(B ≤ x) for B ~ Beta(a, b); a, b > 0. The error is about 1e-12 for
// a + b up to a few thousand, and 1e-8 for ten million, where the logarithms of Γ limit it.
double beta_cdf(double x, double a, double b);

// The smallest x with beta_cdf(x, a, b) ≥ p, for 0 ≤ p ≤ 1.
double beta_quantile(double p, double a, double b);

}  // namespace fcp
