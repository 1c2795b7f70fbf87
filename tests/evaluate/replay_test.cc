// A log replayed through a predictor whose regions can be written down.
#include "fcp/evaluate/replay.h"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/conformal/p_value.h"
#include "fcp/conformal/quantile.h"
#include "fcp/monitoring/adaptive_level.h"

#include "tests/calibrate/known_worlds.h"

namespace fcp {
namespace {

using testing::class_artifact;
using testing::class_rows;
using ::testing::HasSubstr;
using testing::line_artifact;
using testing::line_residual;
using testing::line_rows;

Context batches_of(size_t rows) {
  Context context;
  context.batch = rows;
  return context;
}

ReplayOptions every(size_t rows) {
  ReplayOptions options;
  options.every = rows;
  return options;
}

ReplayOptions adapting(const AdaptOptions& adapt, size_t window = 0, size_t rows = 0) {
  ReplayOptions options = every(rows);
  options.adapt = adapt;
  options.window = window;
  return options;
}

template <typename Work>
std::string replay_complaint(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Replay, CountsWhatEvaluateCounts) {
  const CalibrationArtifact artifact = line_artifact(line_rows(199, 1));
  const double radius = artifact.rows.scores[179];
  MemoryRows rows = line_rows(300, 2);
  size_t covered = 0;
  for (size_t i = 0; i < 300; ++i) covered += line_residual(rows, i) <= radius;
  const MonitorReport report = replay(artifact, rows, every(100), batches_of(7));
  EXPECT_EQ(report.rows, 300u);
  EXPECT_EQ(report.covered.hits, covered);
  EXPECT_NEAR(report.size.mean(), 2 * radius, 1e-5);
  EXPECT_TRUE(report.alarms.empty());
  ASSERT_EQ(report.timeline.size(), 3u);
  EXPECT_EQ(report.timeline[2].label, "rows 200–299");
  EXPECT_EQ(report.adapted_covered.rows, 0u);
}

// The same report for any batch size: nothing depends on how rows are dealt.
TEST(Replay, DoesNotDependOnBatches) {
  const CalibrationArtifact artifact = line_artifact(line_rows(199, 1));
  const ReplayOptions options = adapting({}, 150);
  MemoryRows a = line_rows(500, 2, 2), b = line_rows(500, 2, 2);
  const MonitorReport one = replay(artifact, a, options, batches_of(500));
  const MonitorReport other = replay(artifact, b, options, batches_of(3));
  EXPECT_EQ(one.log_exchangeability, other.log_exchangeability);
  EXPECT_EQ(one.log_drift, other.log_drift);
  EXPECT_EQ(one.adapted_covered.hits, other.adapted_covered.hits);
  EXPECT_NEAR(one.adapted_size.sum, other.adapted_size.sum, 1e-6);
  ASSERT_EQ(one.alarms.size(), other.alarms.size());
  ASSERT_FALSE(one.alarms.empty());
  EXPECT_EQ(one.alarms[0].row, other.alarms[0].row);
}

// Levels, hits and lengths of the adapted regions, row by row, from the definitions.
TEST(Replay, AdaptsAsDefined) {
  const CalibrationArtifact artifact = line_artifact(line_rows(199, 1));
  MemoryRows rows = line_rows(400, 3, 1.3);
  AdaptiveLevel level(Level(0.1), {"aci", 0.005});
  size_t covered = 0;
  double length = 0;
  for (size_t i = 0; i < 400; ++i) {
    const double score = line_residual(rows, i);
    const double p = conformal_p_value(artifact.rows.scores, score).value();
    ASSERT_GT(level.level(), 0);  // so that all radii are finite
    const double radius = conformal_quantile_sorted(artifact.rows.scores, Level(level.level()));
    covered += score <= radius ? 1 : 0;
    length += 2 * radius;
    level.see(p);
  }
  const ReplayOptions options = adapting({"aci", 0.005});
  const MonitorReport report = replay(artifact, rows, options, batches_of(64));
  EXPECT_EQ(report.adapted_covered.hits, covered);
  ASSERT_EQ(report.adapted_size.infinite, 0u);
  EXPECT_NEAR(report.adapted_size.sum, length, 1e-3);
  EXPECT_GT(report.adapted_covered.hits, report.covered.hits);
}

// The level stays and the window moves: plain split calibration on the last rows.
TEST(Replay, AWindowAloneIsMovingCalibration) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  MemoryRows rows = line_rows(300, 4, 3);
  const ReplayOptions options = adapting({"none"}, 99);
  const MonitorReport report = replay(artifact, rows, options, batches_of(50));
  size_t covered = 0;
  for (size_t i = 99; i < 300; ++i) {  // the calibration rows have left
    std::vector<double> window;
    for (size_t j = i - 99; j < i; ++j) window.push_back(line_residual(rows, j));
    covered += line_residual(rows, i) <= conformal_quantile(window, Level(0.1)) ? 1 : 0;
  }
  MemoryRows first = line_rows(300, 4, 3);
  const MonitorReport all = replay(artifact, first, adapting({"none"}, 99, 99), batches_of(50));
  size_t later = 0;
  for (size_t i = 1; i < all.timeline.size(); ++i) later += all.timeline[i].adapted_covered.hits;
  EXPECT_EQ(later, covered);
  EXPECT_EQ(report.adapted_covered.hits, all.adapted_covered.hits);
}

TEST(Replay, WatchesLabelSets) {
  const CalibrationArtifact artifact = class_artifact(class_rows(199, 1));
  MemoryRows rows = class_rows(300, 2);
  const MonitorReport report = replay(artifact, rows, adapting({}), batches_of(32));
  EXPECT_GT(report.covered.rate(), 0.8);
  EXPECT_GT(report.size.mean(), 0.5);
  EXPECT_EQ(report.adapted_covered.rows, 300u);
}

TEST(Replay, NamesColumnsAndTimes) {
  const CalibrationArtifact artifact = line_artifact(line_rows(199, 1));
  MemoryRows rows = line_rows(1000, 5, 4);
  ReplayOptions options;
  for (int i = 0; i < 1000; ++i) options.times.push_back(std::to_string(10 * i));
  const MonitorReport report = replay(artifact, rows, options, batches_of(100));
  ASSERT_GE(report.alarms.size(), 2u);
  EXPECT_EQ(report.alarms[0].time, std::to_string(10 * report.alarms[0].row));
  EXPECT_EQ(report.timeline[1].label, "500");
}

TEST(Replay, ReferenceRowsAreThePast) {
  const CalibrationArtifact artifact = line_artifact(line_rows(199, 1));
  MemoryRows rows = line_rows(300, 6), moved = line_rows(300, 6), past = line_rows(500, 7);
  ReplayOptions options;
  options.reference = &past;
  EXPECT_TRUE(replay(artifact, rows, options, batches_of(50)).alarms.empty());
  Array x = moved.x(), y = moved.y();
  for (size_t i = 0; i < 300; ++i) {  // both x move so that y = 2 x0 − x1 stays what it was
    x.values[2 * i] += 1;
    x.values[2 * i + 1] += 2;
  }
  MemoryRows shifted(x, y);
  past.rewind();
  const MonitorReport report = replay(artifact, shifted, options, batches_of(50));
  ASSERT_EQ(report.alarms.size(), 1u);
  EXPECT_EQ(report.alarms[0].kind, "drift");
  EXPECT_THAT(report.alarms[0].what, HasSubstr("'column 1'"));
}

TEST(Replay, RefusesWhatDoesNotFit) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  const auto complaint = [&](const std::function<void(ReplayOptions&)>& change) {
    MemoryRows rows = line_rows(20, 2);
    ReplayOptions options;
    change(options);
    return replay_complaint([&] { replay(artifact, rows, options, batches_of(10)); });
  };
  EXPECT_THAT(complaint([](auto& options) { options.period = "month"; }), HasSubstr("needs time"));
  EXPECT_THAT(complaint([](auto& options) {
                options.times = {"1", "2"};
              }),
              HasSubstr("names 2 rows"));
  EXPECT_THAT(complaint([](auto& options) {
                options.times = {"2", "1"};
              }),
              HasSubstr("row 1 (from 0) is '1'"));
  EXPECT_THAT(complaint([](auto& options) { options.watched = {"speed"}; }),
              HasSubstr("no column 'speed'"));
  EXPECT_THAT(complaint([](auto& options) { options.adapt = AdaptOptions{"pid"}; }),
              HasSubstr("aci, dtaci"));
  MemoryRows none(zeros({0, 2}), zeros({0, 1}));
  EXPECT_THAT(replay_complaint([&] { replay(artifact, none, ReplayOptions(), batches_of(10)); }),
              HasSubstr("no rows"));
}

}  // namespace
}  // namespace fcp
