// A predictor brought up to date against one calibrated on the same rows at once.
#include "fcp/calibrate/update.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/predictor/artifact_settings.h"

#include "tests/calibrate/known_worlds.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using testing::line_artifact;
using testing::line_residual;
using testing::line_rows;

Context update_context() {
  Context context;
  context.batch = 16;
  return context;
}

std::vector<double> sorted_residuals(const MemoryRows& rows, size_t first) {
  std::vector<double> scores;
  for (size_t i = first; i < rows.x().rows(); ++i) scores.push_back(line_residual(rows, i));
  std::sort(scores.begin(), scores.end());
  return scores;
}

void expect_scores(const CalibrationArtifact& artifact, const std::vector<double>& expected) {
  ASSERT_EQ(artifact.rows.scores.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(artifact.rows.scores[i], expected[i], 1e-5);
  }
}

template <typename Work>
std::string update_complaint(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Update, MergesAllRows) {
  const CalibrationArtifact old = line_artifact(line_rows(50, 1));
  MemoryRows fresh = line_rows(70, 2);
  const CalibrationArtifact made =
      update(old, fresh, {.data_name = "new.csv"}, update_context()).artifact;
  std::vector<double> expected = sorted_residuals(fresh, 0);
  expected.insert(expected.end(), old.rows.scores.begin(), old.rows.scores.end());
  std::sort(expected.begin(), expected.end());
  expect_scores(made, expected);
  EXPECT_EQ(made.method.score.name(), old.method.score.name());
  EXPECT_EQ(made.provenance.at("version"), "2");
  EXPECT_THAT(made.provenance.at("history"), HasSubstr("2: merged, 70 rows of new.csv"));
  EXPECT_EQ(artifact_facts(made).version, 2u);
  EXPECT_EQ(artifact_facts(made).rows, 120u);
}

TEST(Update, SlidesAWindow) {
  const CalibrationArtifact old = line_artifact(line_rows(50, 1));
  MemoryRows fresh = line_rows(70, 2);
  const CalibrationArtifact made =
      update(old, fresh, {.window = 30, .data_name = "new"}, update_context()).artifact;
  expect_scores(made, sorted_residuals(fresh, 40));
  fresh.rewind();
  const CalibrationArtifact filled =
      update(old, fresh, {.window = 100, .data_name = "new"}, update_context()).artifact;
  ASSERT_EQ(filled.rows.count(), 100u);
  EXPECT_TRUE(std::is_sorted(filled.rows.scores.begin(), filled.rows.scores.end()));
  std::vector<double> both = sorted_residuals(fresh, 0);
  both.insert(both.end(), old.rows.scores.begin(), old.rows.scores.end());
  for (const double score : filled.rows.scores) {
    EXPECT_TRUE(std::any_of(both.begin(), both.end(),
                            [&](double other) { return std::abs(other - score) < 1e-5; }));
  }
}

TEST(Update, TakesRowsSinceATime) {
  const CalibrationArtifact old = line_artifact(line_rows(50, 1));
  MemoryRows fresh = line_rows(40, 2);
  UpdateOptions options{.since = "9.5", .data_name = "new"};
  for (int i = 0; i < 40; ++i) options.times.push_back(std::to_string(i));
  const CalibrationArtifact made = update(old, fresh, options, update_context()).artifact;
  expect_scores(made, sorted_residuals(fresh, 10));
  EXPECT_THAT(made.provenance.at("history"), HasSubstr("since 9.5, 30 rows of new"));
  fresh.rewind();
  options.since = "99";
  EXPECT_THAT(update_complaint([&] { update(old, fresh, options, update_context()); }),
              HasSubstr("no row is at or after 99"));
  fresh.rewind();
  options.since = "2026-11-16";  // text that is greater than every number's
  EXPECT_THAT(update_complaint([&] { update(old, fresh, options, update_context()); }),
              HasSubstr("'0' is a number and '2026-11-16' a date"));
}

TEST(Update, RefusesTheSameRowsTwice) {
  const CalibrationArtifact old = line_artifact(line_rows(50, 1));
  MemoryRows fresh = line_rows(70, 2), other = line_rows(30, 3);
  const CalibrationArtifact once =
      update(old, fresh, {.data_name = "new.csv"}, update_context()).artifact;
  fresh.rewind();
  const auto again = [&](const CalibrationArtifact& artifact) {
    fresh.rewind();
    return update_complaint(
        [&] { update(artifact, fresh, {.data_name = "new.csv"}, update_context()); });
  };
  EXPECT_THAT(again(once), HasSubstr("new.csv: the predictor is calibrated on these rows already"));
  const CalibrationArtifact twice =
      update(once, other, {.data_name = "other.csv"}, update_context()).artifact;
  EXPECT_EQ(twice.provenance.at("version"), "3");
  EXPECT_THAT(again(twice), HasSubstr("already"));
}

MemoryRows rows_at(const MemoryRows& rows, const std::vector<size_t>& places) {
  Array x = zeros({static_cast<int64_t>(places.size()), 2});
  Array y = zeros({static_cast<int64_t>(places.size()), 1});
  for (size_t i = 0; i < places.size(); ++i) {
    std::copy_n(rows.x().row(places[i]).begin(), 2, x.values.begin() + 2 * static_cast<long>(i));
    y.values[i] = rows.y().values[places[i]];
  }
  return {std::move(x), std::move(y)};
}

// In another order, with new ones behind them, in part, and in a window that keeps old ones.
TEST(Update, RefusesRowsItKnowsOneByOne) {
  const CalibrationArtifact old = line_artifact(line_rows(50, 1));
  MemoryRows log = line_rows(74, 2), fresh = rows_at(log, Random(1).permutation(70));
  const CalibrationArtifact once =
      update(old, fresh, {.data_name = "new.csv"}, update_context()).artifact;
  const auto complaint = [&](const std::vector<size_t>& places, size_t window = 0) {
    MemoryRows rows = rows_at(log, places);
    return update_complaint(
        [&] { update(once, rows, {.window = window, .data_name = "new.csv"}, update_context()); });
  };
  std::vector<size_t> all(71);
  std::iota(all.begin(), all.end(), size_t{0});
  EXPECT_THAT(complaint(Random(5).permutation(70)), HasSubstr("on 70 of them: their scores"));
  EXPECT_THAT(complaint(all), HasSubstr("new.csv: the predictor is calibrated on these rows "
                                        "already, or on 70 of them"));
  EXPECT_THAT(complaint({all.begin(), all.begin() + 12}), HasSubstr("already"));
  EXPECT_THAT(complaint({all.begin() + 1, all.end()}, 150), HasSubstr("already"));
  EXPECT_EQ(complaint(all, 71), "");  // no old row stays
  EXPECT_EQ(complaint({70, 71, 72, 73}), "");
}

// Rows of a world with few different ones repeat by chance, and are told from rows that are given
// again as far as counts can tell.
TEST(Update, AllowsForScoresThatRepeatByChance) {
  Random random(4);
  for (const uint64_t values : {1, 2, 30, 500, 100'000}) {
    for (int trial = 0; trial < 40; ++trial) {
      const auto draw = [&](size_t rows) {
        std::vector<double> scores(rows);
        for (double& one : scores) one = static_cast<double>(random.below(values)) / 7;
        return scores;
      };
      const std::vector<double> before = draw(300);
      std::vector<double> now = draw(trial % 2 == 0 ? 300 : 40);
      EXPECT_GT(overlap_chance(before, now).chance, 1e-5) << values;
      if (values < 30) continue;
      EXPECT_LT(overlap_chance(before, before).chance, 1e-6) << values;
      now.insert(now.end(), before.begin(), before.end());
      if (values >= 500) {
        EXPECT_LT(overlap_chance(before, now).chance, 1e-6) << values;
      }
    }
  }
  EXPECT_EQ(overlap_chance({}, {}).chance, 1);
}

TEST(Update, RefusesWhatExcludesEachOther) {
  const CalibrationArtifact old = line_artifact(line_rows(50, 1));
  MemoryRows fresh = line_rows(20, 2);
  EXPECT_THAT(
      update_complaint([&] { update(old, fresh, {.window = 5, .since = "1"}, update_context()); }),
      HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace fcp
