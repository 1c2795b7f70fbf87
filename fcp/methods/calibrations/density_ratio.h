// The likelihood ratio dQ/dP of two samples of rows, estimated by logistic regression: where a
// classifier that tells Q from P answers the log-odds z(x), the ratio is exp(z(x)) up to a factor,
// which weighted calibration does not feel.
//
//   z(x) = b + Σ_d a_d (x_d − mean_d) / deviation_d
//
// fitted by Newton's method on the regularised likelihood (a ridge of 1 on a, so that separable
// samples stay finite). Assumes that the log-ratio is about linear in x. Cost: O((n + m) D²) a step
// and D³ for the solution.
// Reference: Tibshirani et al. 2019, section 2.3. Tested by
// tests/methods/calibrations/density_ratio_test.cc.
#pragma once

#include <vector>

#include <torch/types.h>

namespace fcp {

struct DensityRatio {
  torch::Tensor mean, deviation;  // [D] doubles
  torch::Tensor slope;            // [D + 1] doubles: a, then b

  bool defined() const { return slope.defined(); }

  // The ratio of each row of x [N, …], at most e^30 and at least e^-30.
  std::vector<double> weights(const torch::Tensor& x) const;
};

// P made `from` [n, …], Q made `to` [m, …]. At least two rows each.
DensityRatio fit_density_ratio(const torch::Tensor& from, const torch::Tensor& to);

}  // namespace fcp
