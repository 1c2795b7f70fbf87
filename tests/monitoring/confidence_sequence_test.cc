#include "fcp/monitoring/confidence_sequence.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/monitoring/streams.h"

namespace fcp {
namespace {

// The mixture by numerical integration over the Jeffreys law, θ = sin²(u): dπ = 2/π du.
double slow_log_mixture(size_t hits, size_t misses, double rate) {
  constexpr int kGrid = 20000;
  const auto s = static_cast<double>(hits), f = static_cast<double>(misses);
  double mean = 0;
  for (int i = 0; i < kGrid; ++i) {
    const double u = (i + 0.5) / kGrid * std::acos(-1.0) / 2;
    const double theta = std::sin(u) * std::sin(u);
    mean += std::exp(s * std::log(theta / rate) + f * std::log((1 - theta) / (1 - rate))) / kGrid;
  }
  return std::log(mean);
}

TEST(ConfidenceSequence, EndsWhereTheMixtureReachesItsThreshold) {
  for (const size_t hits : {1u, 7u, 45u, 90u}) {
    const size_t rows = 100;
    const Interval found = rate_sequence(hits, rows, 0.05);
    EXPECT_NEAR(slow_log_mixture(hits, rows - hits, found.lower), std::log(20.0), 1e-6);
    EXPECT_NEAR(slow_log_mixture(hits, rows - hits, found.upper), std::log(20.0), 1e-6);
    EXPECT_TRUE(found.contains(static_cast<double>(hits) / static_cast<double>(rows)));
  }
}

TEST(ConfidenceSequence, HasEndsWithoutHitsOrMisses) {
  EXPECT_EQ(rate_sequence(0, 0, 0.05), (Interval{0, 1}));
  EXPECT_EQ(rate_sequence(0, 50, 0.05).lower, 0);
  EXPECT_LT(rate_sequence(0, 50, 0.05).upper, 0.15);
  EXPECT_EQ(rate_sequence(50, 50, 0.05).upper, 1);
  EXPECT_GT(rate_sequence(50, 50, 0.05).lower, 0.85);
  EXPECT_THROW(rate_sequence(3, 2, 0.05), Error);
  EXPECT_THROW(rate_sequence(1, 2, 0), Error);
}

// The truth leaves the interval at any of 400 times in at most 10 % of 10,000 streams; fails by
// chance with probability at most 1e-6. An interval for one fixed time would leave far more often.
TEST(ConfidenceSequence, HoldsAtAllTimesAtOnce) {
  constexpr size_t kStreams = 10000;
  size_t left = 0;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    Random random(stream);
    size_t hits = 0;
    bool outside = false;
    for (size_t t = 1; t <= 400; ++t) {
      hits += random.uniform() < 0.9 ? 1 : 0;
      if (t % 16 == 0 && !outside) outside = !rate_sequence(hits, t, 0.1).contains(0.9);
    }
    left += outside ? 1 : 0;
  }
  EXPECT_LE(left, most_alarms(kStreams, 0.1));
  EXPECT_GT(left, 0u);
}

}  // namespace
}  // namespace fcp
