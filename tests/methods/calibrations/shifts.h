// Simulated rows for the tests of calibration, and how sure a mean over calibrations is.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <torch/types.h>

#include "fcp/base/random.h"

namespace fcp {

// P(|ε| σ ≤ radius) for a standard normal ε: the coverage of a radius where the score is |ε| σ.
inline double normal_coverage(double radius, double sigma) {
  return radius < 0 ? 0 : std::erf(radius / (sigma * std::sqrt(2.0)));
}

// Numbers as a matrix of one column, as features are.
inline torch::Tensor feature_column(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat).reshape({static_cast<int64_t>(values.size()), 1});
}

struct SureMean {
  double mean = 0;
  double slack = 0;
};

// The mean of independent numbers in [0, 1], and by how much it may miss their expectation at most,
// on one side, but with a chance of 1e-7: Maurer and Pontil's empirical Bernstein bound,
// √(2 V ln(2/δ) / T) + 7 ln(2/δ) / (3 (T − 1)).
inline SureMean sure_mean(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / count) * (value - sum / count);
  const double log = std::log(2 / 1e-7);
  return {sum / count,
          std::sqrt(2 * squares / (count - 1) * log / count) + 7 * log / (3 * (count - 1))};
}

}  // namespace fcp
