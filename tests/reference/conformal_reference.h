// Slow, obviously right versions of the conformal numbers, for tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace fcp::reference {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The smallest k with k ≥ (1 − a/b)(n + 1), by trying every k.
inline size_t rank(uint64_t a, uint64_t b, size_t n) {
  size_t k = 0;
  while (k * b < (b - a) * (n + 1)) ++k;
  return k;
}

// The k-th smallest score for miscoverage a/b, by sorting.
inline double quantile(std::vector<double> scores, uint64_t a, uint64_t b) {
  std::sort(scores.begin(), scores.end());
  const size_t k = rank(a, b, scores.size());
  return k > scores.size() ? kInfinity : scores[k - 1];
}

// The weighted quantile for integer weights: the score of row i is repeated weights[i] times, +∞ is
// repeated test_weight times, and the smallest score with a share ≥ 1 − a/b at or below it is
// taken.
inline double repeated_quantile(std::span<const double> scores, std::span<const double> weights,
                                size_t test_weight, uint64_t a, uint64_t b) {
  std::vector<double> all(test_weight, kInfinity);
  for (size_t i = 0; i < scores.size(); ++i) {
    for (double copy = 0; copy < weights[i]; ++copy) all.push_back(scores[i]);
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    if ((i + 1) * b >= (b - a) * all.size()) return all[i];
  }
  return kInfinity;
}

// P(B ≤ x) for B ~ Beta(k, n + 1 − k) is P(at least k of n tosses succeed), summed term by term.
inline double beta_cdf(double x, size_t k, size_t n) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  double sum = 0;
  for (size_t j = k; j <= n; ++j) {
    const double successes = static_cast<double>(j);
    const double failures = static_cast<double>(n - j);
    sum +=
        std::exp(std::lgamma(static_cast<double>(n) + 1) - std::lgamma(successes + 1) -
                 std::lgamma(failures + 1) + successes * std::log(x) + failures * std::log1p(-x));
  }
  return std::min(sum, 1.0);
}

}  // namespace fcp::reference
