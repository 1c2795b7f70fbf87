// Streams of rows in which nothing changes, and how many false alarms among them are too many.
#pragma once

#include <cstddef>

#include "fcp/evaluate/measures/coverage_law.h"

namespace fcp {

// The number of false alarms among `streams` that is exceeded with probability at most 1e-6 where
// each stream has one with probability `rate`: P(Binomial(m, rate) ≥ k) = I_rate(k, m − k + 1).
inline size_t most_alarms(size_t streams, double rate) {
  size_t most = 0;
  while (beta_cdf(rate, static_cast<double>(most + 1), static_cast<double>(streams - most)) >
         1e-6) {
    ++most;
  }
  return most;
}

}  // namespace fcp
