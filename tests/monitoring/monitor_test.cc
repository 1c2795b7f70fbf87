#include "fcp/monitoring/monitor.h"

#include <cmath>
#include <limits>
#include <string>
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
    row.time = "row " + std::to_string(t);
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
    EXPECT_EQ(alarm.time, "row " + std::to_string(alarm.row));
    EXPECT_EQ(alarm.began, alarm.since < 1000 ? "first" : "second");
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

// A monitor of two sides and groups, with everything in its state that can be.
struct Stream {
  Monitor monitor;
  Random random{3};

  Stream()
      : monitor({.level = Level(0.2), .periods = 5}, calibration(),
                Drift(2, {0, 1}, {"a", "b"}, 4)) {}

  static MonitoredCalibration calibration() {
    Random random(2);
    MonitoredCalibration made{.groups = {"g", "few"}, .scores = {{{}, {}}, {{1.0}, {1.0}}}};
    for (int i = 0; i < 300; ++i) {
      for (auto& side : made.scores[0]) side.push_back(random.normal());
    }
    return made;
  }

  void take(size_t rows, double shift) {
    for (size_t i = 0; i < rows; ++i) {
      const std::vector<double> scores = {random.normal() + shift, random.normal()};
      const std::vector<float> x = {static_cast<float>(random.normal() + shift), 1};
      MonitoredRow row;
      row.scores = scores;
      row.covered = scores[0] < 1;
      row.size = scores[1] > 2 ? std::numeric_limits<double>::infinity() : 1;
      row.group = static_cast<int64_t>(random.below(3)) - 1;
      row.shown = row.covered ? "in" : "out";
      row.x = x;
      monitor.take(row, std::to_string(monitor.rows() / 100), AdaptedRow{0.1, row.covered, 2});
    }
  }
};

TEST(Monitor, GoesOnFromItsState) {
  for (const double shift : {0.0, 3.0}) {  // without alarms, and with two
    Stream one, other;
    one.take(700, shift);
    const std::string state = one.monitor.state();
    other.monitor.restore(state);
    other.random = one.random;
    EXPECT_EQ(other.monitor.state(), state);
    EXPECT_EQ(other.monitor.alarms().size(), shift > 0 ? 2u : 0u);
    one.take(500, 0);
    other.take(500, 0);
    EXPECT_EQ(other.monitor.state(), one.monitor.state());
    const MonitorReport a = one.monitor.report(), b = other.monitor.report();
    EXPECT_EQ(a.rows, 1200u);
    EXPECT_EQ(b.sequence, a.sequence);
    ASSERT_EQ(b.timeline.size(), 5u);
    EXPECT_EQ(b.timeline[0].label, "7");
    EXPECT_EQ(b.timeline[4].first_row, 1100u);
    EXPECT_EQ(b.timeline[4].so_far.rows, 1200u);
  }
}

TEST(Monitor, RefusesTheStateOfAnother) {
  Stream stream;
  stream.take(100, 0);
  const std::string state = stream.monitor.state();
  EXPECT_THROW(stream.monitor.restore(state.substr(1)), Error);
  EXPECT_THROW(stream.monitor.restore(state.substr(0, state.size() - 1)), Error);
  EXPECT_THROW(stream.monitor.restore(state + "x"), Error);
  EXPECT_THROW(stream.monitor.restore(""), Error);
  EXPECT_EQ(stream.monitor.state(), state);
  Monitor plain({}, {.scores = {{{1, 2, 3}}}}, std::nullopt);
  EXPECT_THROW(plain.restore(state), Error);
}

// Once 1,000 scores of a group (of 100 that share 100,000) and 20,000 values of a column are there.
TEST(Monitor, DoesNotGrowWithTheRows) {
  const MonitoredCalibration calibration{.groups = std::vector<std::string>(100, "g"),
                                         .scores = {100, {{1.0}}}};
  Monitor monitor({}, calibration, Drift(1, {0}, {}, 4));
  Random random(5);
  const auto size_after = [&](size_t rows) {
    while (monitor.rows() < rows) {
      const double score = random.normal();
      const auto x = static_cast<float>(random.normal());
      MonitoredRow row;
      row.scores = {&score, 1};
      row.covered = true;
      row.group = -1;
      row.x = {&x, 1};
      monitor.take(row, "");
    }
    return monitor.state().size();
  };
  const size_t early = size_after(100), full = size_after(20'001);
  EXPECT_EQ(full - early, (900 + 19'900) * sizeof(double));
  EXPECT_EQ(size_after(30'000), full);
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
namespace {

std::vector<size_t> first_columns(size_t count) {
  std::vector<size_t> columns(count);
  for (size_t i = 0; i < count; ++i) columns[i] = i;
  return columns;
}

// Three columns: one of numbers with gaps, one constant, one of few categories.
std::vector<float> plain_row(Random& random) {
  const float gap = std::numeric_limits<float>::quiet_NaN();
  return {random.below(10) == 0 ? gap : static_cast<float>(random.normal()), 1.0f,
          static_cast<float>(random.below(3))};
}

// 2,000 streams, at most 10 % alarms; fails by chance with probability at most 1e-6.
TEST(Drift, RaisesFalseAlarmsNoMoreOftenThanItSays) {
  constexpr size_t kStreams = 2000;
  size_t alarms = 0;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    Random random(stream);
    Drift drift(3, first_columns(3), {"a", "b", "c"}, stream);
    for (int i = 0; i < 50; ++i) drift.add_reference(plain_row(random));
    CapitalWatch watch(0.1);
    for (size_t t = 0; t < 200; ++t) {
      drift.step(plain_row(random));
      watch.see(t, drift.log_capital());
    }
    alarms += watch.crossed() ? 1 : 0;
  }
  EXPECT_LE(alarms, most_alarms(kStreams, 0.1));
}

TEST(Drift, NamesTheColumnThatDrifts) {
  for (const size_t changed : {0u, 1u, 2u}) {
    Random random(changed);
    Drift drift(3, first_columns(3), {"a", "b", "c"}, 1);
    CapitalWatch watch(0.001);
    size_t t = 0;
    for (; t < 3000 && !watch.crossed(); ++t) {
      std::vector<float> row = plain_row(random);
      if (t >= 1000) row[changed] += 2;
      drift.step(row);
      watch.see(t, drift.log_capital());
    }
    EXPECT_GT(t, 1000u);
    EXPECT_LT(t, 1200u) << "column " << changed;
    EXPECT_EQ(drift.strangest(), std::vector<std::string>({"a", "b", "c"})[changed]);
  }
}

TEST(Drift, WatchesManyColumnsThroughSums) {
  Random random(5);
  Drift drift(500, first_columns(500), {}, 1);
  EXPECT_EQ(drift.names().size(), 32u);
  CapitalWatch watch(0.001);
  size_t t = 0;
  for (; t < 2000 && !watch.crossed(); ++t) {
    std::vector<float> row(500);
    for (float& value : row) {
      value = static_cast<float>(random.normal() * (t < 300 ? 1 : 2));
    }
    drift.step(row);
    watch.see(t, drift.log_capital());
  }
  EXPECT_GT(t, 300u);
  EXPECT_LT(t, 700u);
}

TEST(Drift, RefusesRowsThatDoNotFit) {
  EXPECT_THROW(Drift(2, {2}, {}, 0), Error);
  Drift drift(2, {1}, {}, 0);
  EXPECT_EQ(drift.names().at(0), "column 1");
  EXPECT_THROW(drift.step(std::vector<float>{1}), Error);
}

}  // namespace
}  // namespace fcp
