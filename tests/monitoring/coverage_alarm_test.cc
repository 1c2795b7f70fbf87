#include "fcp/monitoring/coverage_alarm.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/monitoring/martingale.h"

#include "tests/monitoring/streams.h"

namespace fcp {
namespace {

// At the rate itself the mean of the capital stays; below it, it falls; above, it rises.
TEST(CoverageAlarm, IsFairAtTheAllowedRate) {
  CoverageAlarm test(0.1);
  for (const bool covered : {true, false, false, true, true}) {
    CoverageAlarm if_missed = test, if_covered = test;
    if_missed.step(false);
    if_covered.step(true);
    const auto mean = [&](double rate) {
      return rate * std::exp(if_missed.log_capital()) +
             (1 - rate) * std::exp(if_covered.log_capital());
    };
    const double now = std::exp(test.log_capital());
    ASSERT_NEAR(mean(0.1), now, 1e-12);
    ASSERT_LT(mean(0.05), now);
    ASSERT_GT(mean(0.2), now);
    test.step(covered);
  }
  EXPECT_THROW(CoverageAlarm(0), Error);
  EXPECT_THROW(CoverageAlarm(1), Error);
}

TEST(CoverageAlarm, AllowsTheLuckOfCalibration) {
  EXPECT_FALSE(allowed_miss_rate(Level(0.1), 8, 0.01).has_value());
  const double few = allowed_miss_rate(Level(0.1), 99, 0.01).value();
  const double many = allowed_miss_rate(Level(0.1), 99999, 0.01).value();
  EXPECT_GT(few, 0.17);
  EXPECT_LT(few, 0.2);
  EXPECT_GT(many, 0.1);
  EXPECT_LT(many, 0.103);
}

// 10,000 predictors, each calibrated on 50 rows and watched for 300 at a rate of 0.1 in all, half
// of it for the luck of calibration; fails by chance with probability at most 1e-6. Also watched
// against α itself, which no calibrated predictor promises: there alarms are more than 0.1.
TEST(CoverageAlarm, RaisesFalseAlarmsNoMoreOftenThanItSays) {
  constexpr size_t kStreams = 10000;
  const Level level(0.2);
  size_t alarms = 0, naive_alarms = 0;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    Random random(stream);
    std::vector<double> scores(50);
    for (double& score : scores) score = random.uniform();
    const double radius = conformal_quantile(scores, level);
    CoverageAlarm test(allowed_miss_rate(level, scores.size(), 0.05).value()), naive(0.2);
    CapitalWatch watch(0.05), naive_watch(0.05);
    for (size_t t = 0; t < 300; ++t) {
      const bool covered = random.uniform() <= radius;
      test.step(covered);
      naive.step(covered);
      watch.see(t, test.log_capital());
      naive_watch.see(t, naive.log_capital());
    }
    alarms += watch.crossed() ? 1 : 0;
    naive_alarms += naive_watch.crossed() ? 1 : 0;
  }
  EXPECT_LE(alarms, most_alarms(kStreams, 0.1));
  EXPECT_GT(naive_alarms, most_alarms(kStreams, 0.1));
}

// From 10 % to 30 % misses after 5,000 good rows: noticed within 300 rows in all of 20 streams.
TEST(CoverageAlarm, NoticesALateDrop) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    CoverageAlarm test(0.12);
    CapitalWatch watch(0.001);
    size_t row = 0;
    while (!watch.crossed() && row < 10000) {
      test.step(random.uniform() >= (row < 5000 ? 0.1 : 0.3));
      watch.see(row, test.log_capital());
      ++row;
    }
    EXPECT_GT(row, 5000u);
    EXPECT_LT(row, 5300u);
  }
}

}  // namespace
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
namespace {

using ::testing::ElementsAre;
using Times = std::vector<std::string>;

TEST(Periods, AreCutFromDates) {
  const Times times = {"2026-01-31 23:00", "2026-02-01 00:00"};
  EXPECT_THAT(calendar_periods(times, "year"), ElementsAre("2026", "2026"));
  EXPECT_THAT(calendar_periods(times, "month"), ElementsAre("2026-01", "2026-02"));
  EXPECT_THAT(calendar_periods(times, "hour"), ElementsAre("2026-01-31 23", "2026-02-01 00"));
  EXPECT_THROW(calendar_periods(times, "week"), OptionError);
  EXPECT_THROW(calendar_periods({"2026-01-31"}, "hour"), Error);
  EXPECT_THROW(calendar_periods({"7"}, "day"), Error);
}

TEST(Periods, AreCounted) {
  EXPECT_EQ(counted_period(0, 10, {}), "rows 0–9");
  EXPECT_EQ(counted_period(19, 10, {}), "rows 10–19");
  EXPECT_EQ(counted_period(3, 2, {"1", "2", "3", "4"}), "3");
}

}  // namespace
}  // namespace fcp
