#include "fcp/monitoring/monitor.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"

#include "tests/monitoring/streams.h"

namespace fcp {
namespace {

// A world in which scores are |normal|, times `factor` from row `change` on.
struct World {
  double factor = 1;
  size_t change = 0;
  size_t rows = 300;
  double input_shift = 0;  // of the inputs from `change` on
};

MonitorReport watch(const World& world, const MonitorOptions& options) {
  Random random(options.seed);
  std::vector<double> scores(200);
  for (double& score : scores) score = std::abs(random.normal());
  const double radius = conformal_quantile(scores, options.level);
  MonitoredCalibration calibration;
  calibration.scores = {{scores}};
  Monitor monitor(options, calibration, Drift(1, {0}, {"speed"}, options.seed));
  for (size_t t = 0; t < world.rows; ++t) {
    const bool changed = t >= world.change;
    const double score = std::abs(random.normal()) * (changed ? world.factor : 1);
    const auto x = static_cast<float>(random.normal() + (changed ? world.input_shift : 0));
    MonitoredRow row;
    row.scores = {&score, 1};
    row.covered = score <= radius;
    row.size = 2 * radius;
    row.shown = t % 2 == 0 ? "even" : "odd";
    row.x = {&x, 1};
    monitor.take(row, t < world.rows / 2 ? "first" : "second");
  }
  return monitor.report();
}

// Of 3,000 quiet streams at most 10 % raise any of the three alarms; fails by chance with
// probability at most 1e-6.
TEST(Monitor, RaisesFalseAlarmsNoMoreOftenThanItSays) {
  size_t alarmed = 0;
  constexpr size_t kStreams = 3000;
  for (uint64_t seed = 0; seed < kStreams; ++seed) {
    const MonitorOptions options{.level = Level(0.2), .false_alarms = 0.1, .seed = seed};
    alarmed += watch({}, options).alarms.empty() ? 0 : 1;
  }
  EXPECT_LE(alarmed, most_alarms(kStreams, 0.1));
}

TEST(Monitor, NamesWhatChangedAndWhen) {
  const MonitorReport worse = watch({.factor = 3, .change = 1000, .rows = 2000}, {});
  ASSERT_EQ(worse.alarms.size(), 2u);
  EXPECT_NE(worse.alarms[0].kind, worse.alarms[1].kind);
  for (const MonitorAlarm& alarm : worse.alarms) {
    EXPECT_GE(alarm.row, 1000u);
    EXPECT_LT(alarm.row, 1200u);
    EXPECT_NEAR(static_cast<double>(alarm.since), 1000, 100);
    EXPECT_GT(alarm.log10_odds, 2);
  }
  const MonitorReport moved = watch({.change = 1000, .rows = 2000, .input_shift = 3}, {});
  ASSERT_EQ(moved.alarms.size(), 1u);
  EXPECT_EQ(moved.alarms[0].kind, "drift");
  EXPECT_NE(moved.alarms[0].what.find("'speed'"), std::string::npos);
}

TEST(Monitor, CountsPeriodsAndGroups) {
  const MonitorReport report = watch({}, {});
  ASSERT_EQ(report.timeline.size(), 2u);
  EXPECT_EQ(report.timeline[1].label, "second");
  EXPECT_EQ(report.timeline[1].first_row, 150u);
  EXPECT_EQ(report.timeline[0].covered.hits + report.timeline[1].covered.hits, report.covered.hits);
  EXPECT_EQ(report.timeline[1].sequence, report.sequence);
  EXPECT_TRUE(report.sequence.contains(report.covered.rate()));
  ASSERT_EQ(report.groups.size(), 2u);
  EXPECT_EQ(report.groups[0].name, "even");
  EXPECT_EQ(report.groups[0].covered.rows, 150u);
  EXPECT_TRUE(report.watches_coverage && report.watches_drift && report.watches_exchangeability);
}

TEST(Monitor, WatchesGroupsWithRadiiOfTheirOwn) {
  MonitoredCalibration calibration;
  std::vector<double> scores(100);
  for (size_t i = 0; i < 100; ++i) scores[i] = static_cast<double>(i);
  calibration.groups = {"a", "b", "few"};
  calibration.scores = {{scores}, {scores}, {{1.0}}};
  Monitor monitor({}, calibration, std::nullopt);
  Random random(1);
  for (int t = 0; t < 2000; ++t) {
    const auto group = static_cast<int64_t>(random.below(4)) - 1;
    const double score = 100 * random.uniform();
    MonitoredRow row;
    row.scores = {&score, 1};
    row.group = group;
    row.covered = group != 1 && score <= 90;
    monitor.take(row, "");
  }
  const MonitorReport report = monitor.report();
  ASSERT_EQ(report.alarms.size(), 1u);
  EXPECT_EQ(report.alarms[0].kind, "coverage");
  EXPECT_NE(report.alarms[0].what.find("'b'"), std::string::npos);
}

TEST(Monitor, WatchesOnlyWhatHasALaw) {
  MonitoredCalibration calibration;
  calibration.scores = {{{1, 2, 3}}};
  calibration.exchangeable = calibration.has_law = false;
  Monitor monitor({.level = Level(0.5)}, calibration, std::nullopt);
  for (int t = 0; t < 500; ++t) {
    const double score = 9;
    MonitoredRow row;
    row.scores = {&score, 1};
    row.size = std::numeric_limits<double>::infinity();
    monitor.take(row, "", AdaptedRow{.level = 0.1, .covered = true, .size = 2});
  }
  const MonitorReport report = monitor.report();
  EXPECT_TRUE(report.alarms.empty());
  EXPECT_EQ(report.covered.hits, 0u);
  EXPECT_EQ(report.size.infinite, 500u);
  EXPECT_EQ(report.adapted_covered.hits, 500u);
  EXPECT_EQ(report.adapted_size.mean(), 2);
  const std::vector<double> two = {1, 2};
  MonitoredRow row;
  row.scores = two;
  EXPECT_THROW(monitor.take(row, ""), Error);
}

}  // namespace
}  // namespace fcp
