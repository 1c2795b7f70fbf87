// Several targets: a radius for each, an ellipsoid for all, and the choice between both by volume.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/calibrate/update.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"

#include "tests/calibrate/memory_rows.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

enum class Errors { kTogether, kApart };

const Graph& pair_network() {
  static const Graph kNetwork = [] {
    torch::manual_seed(3);
    return make_mlp({3, 16, 16, 2});
  }();
  return kNetwork;
}

// Two targets whose errors go together (a correlation of 0.95 that changes its sign with x_0), or
// are uniform and independent, so that a box is the smallest region.
MemoryRows pair_rows(Errors errors, int64_t rows, uint64_t seed, int64_t targets = 2) {
  Random random(seed);
  Array x = zeros({rows, 3}), y = zeros({rows, targets});
  for (float& value : x.values) value = static_cast<float>(random.normal());
  const torch::NoGradGuard no_grad;
  const torch::Tensor answer =
      Network(pair_network())
          .run({torch::from_blob(x.values.data(), {rows, 3}, torch::kFloat)})[0]
          .contiguous();
  for (int64_t i = 0; i < rows; ++i) {
    const double sign = x.values[static_cast<size_t>(3 * i)] > 0 ? 1 : -1;
    double first = random.normal(), second = 0.95 * sign * first + 0.31 * random.normal();
    if (errors == Errors::kApart) {
      first = 2 * random.uniform() - 1;
      second = 2 * random.uniform() - 1;
    }
    for (int64_t k = 0; k < targets; ++k) {
      y.values[static_cast<size_t>(targets * i + k)] =
          static_cast<float>(answer.data_ptr<float>()[2 * i + k % 2] + (k == 0 ? first : second));
    }
  }
  return {std::move(x), std::move(y)};
}

CalibrateResult calibrated(const MethodRequest& method, MemoryRows rows,
                           const std::vector<Level>& levels = {}) {
  CalibrateSettings settings;
  settings.data_name = "memory";
  settings.method = method;
  settings.levels = levels;
  return calibrate(pair_network(), rows, settings, Context{});
}

MethodRequest joint(const std::string& kind, const std::string& score = kAutoScore) {
  MethodRequest request;
  request.score = score;
  request.set("joint", kind);
  return request;
}

// The coverage of each target by its interval, of both at once, and the mean side of a region.
struct JointFigures {
  double first = 0, second = 0, both = 0, side = 0;
};

JointFigures figures(const CalibrationArtifact& artifact, const MemoryRows& rows) {
  const torch::NoGradGuard no_grad;
  const internal::PredictorCore predictor(artifact);
  const Array &x = rows.x(), &y = rows.y();
  const TestInputs inputs = predictor.describe(
      torch::from_blob(const_cast<float*>(x.values.data()), x.shape, torch::kFloat));
  const torch::Tensor truth =
      torch::from_blob(const_cast<float*>(y.values.data()), y.shape, torch::kFloat)
          .to(torch::kDouble);
  const Regions regions = predictor.region(inputs, Level(0.1));
  const torch::Tensor in =
      (regions.lower <= truth).logical_and(truth <= regions.upper).to(torch::kDouble).mean(0);
  return {in[0].item<double>(), in[1].item<double>(),
          in_regions(regions, truth).to(torch::kDouble).mean().item<double>(),
          region_volumes(regions).mean().item<double>()};
}

TEST(Joint, EachTargetIsCoveredByItself) {
  const CalibrateResult result =
      calibrated(joint("each", "residual"), pair_rows(Errors::kApart, 2000, 1));
  const CalibrationArtifact& artifact = result.artifact;
  EXPECT_EQ(artifact.rows.targets, 2);
  EXPECT_EQ(artifact.method.score.targets, 2U);
  EXPECT_EQ(artifact.radius(Level(0.1)).size(), 2U);
  const JointFigures found = figures(artifact, pair_rows(Errors::kApart, 4000, 2));
  // Five deviations of n = 2,000 and m = 4,000 rows: a chance of 1e-6.
  EXPECT_NEAR(found.first, 0.9, 0.041);
  EXPECT_NEAR(found.second, 0.9, 0.041);
  EXPECT_NEAR(found.both, 0.81, 0.054);
}

TEST(Joint, EachIsKeptInItsFile) {
  const CalibrationArtifact made =
      calibrated(joint("each", "residual"), pair_rows(Errors::kApart, 300, 3)).artifact;
  const CalibrationArtifact again = artifact_from_graph(artifact_graph(made), "again");
  EXPECT_EQ(again.rows.targets, 2);
  EXPECT_EQ(again.method, made.method);
  EXPECT_EQ(again.radius(Level(0.1)), made.radius(Level(0.1)));
  // Of some levels alone the same radii are kept.
  const CalibrationArtifact some =
      calibrated(joint("each", "residual"), pair_rows(Errors::kApart, 300, 3), {Level(0.1)})
          .artifact;
  EXPECT_EQ(some.radius(Level(0.1)), made.radius(Level(0.1)));
  // New rows join target by target.
  MemoryRows fresh = pair_rows(Errors::kApart, 200, 4);
  const CalibrationArtifact updated = update(again, fresh, {.data_name = "fresh"}, {}).artifact;
  EXPECT_EQ(updated.rows.targets, 2);
  EXPECT_EQ(updated.rows.count(), 500U);
  CalibrationArtifact damaged = made;
  damaged.method.score.targets = 3;
  EXPECT_THROW(artifact_from_graph(artifact_graph(damaged), "damaged"), Error);
}

TEST(Joint, EachWithAutoComparesScoresOfOutputs) {
  const CalibrateResult result = calibrated(joint("each"), pair_rows(Errors::kApart, 2000, 5));
  EXPECT_EQ(result.artifact.rows.targets, 2);
  ASSERT_TRUE(result.choices.scores.has_value());
  for (const ScoreTried& one : result.choices.scores->candidates) {
    EXPECT_FALSE(uses_features(one.name)) << one.name;
    EXPECT_NE(one.name, "ellipsoid");
  }
}

// The heads are learned on rows that calibration does not use.
TEST(Joint, VolumeLearnsHowErrorsGoTogether) {
  const CalibrateResult volume = calibrated(joint("volume"), pair_rows(Errors::kTogether, 5000, 6));
  EXPECT_NE(volume.artifact.method.score.as<EllipsoidOptions>(), nullptr);
  EXPECT_EQ(volume.choices.head_rows, 1500U);
  EXPECT_EQ(volume.findings.kept, 5000 - volume.choices.head_rows - volume.choices.rows);
  const CalibrateResult boxes =
      calibrated(joint("all", "residual"), pair_rows(Errors::kTogether, 5000, 6));
  const MemoryRows fresh = pair_rows(Errors::kTogether, 4000, 7);
  const JointFigures ellipsoid = figures(volume.artifact, fresh);
  const JointFigures box = figures(boxes.artifact, fresh);
  EXPECT_NEAR(ellipsoid.both, 0.9, 0.037);  // as above, of 2,500 rows at least
  EXPECT_LT(ellipsoid.side, 0.8 * box.side);
  EXPECT_GE(ellipsoid.first, ellipsoid.both);
}

TEST(Joint, AutoTakesTheSmallerRegion) {
  const CalibrateResult together = calibrated(joint("auto"), pair_rows(Errors::kTogether, 5000, 8));
  EXPECT_NE(together.artifact.method.score.as<EllipsoidOptions>(), nullptr);
  EXPECT_EQ(together.choices.scores->by, ChosenBy::kVolume);
  EXPECT_EQ(together.artifact.facts().at("objective"), "volume");
  const CalibrateResult apart = calibrated(joint("auto"), pair_rows(Errors::kApart, 5000, 9));
  EXPECT_EQ(apart.artifact.method.score.as<EllipsoidOptions>(), nullptr);
}

// What was promised before is promised of the new rows, where nothing else is asked for.
TEST(Joint, IsKeptWhereAPredictorIsCalibratedAgain) {
  const CalibrationArtifact made =
      calibrated(joint("each", "residual"), pair_rows(Errors::kApart, 300, 11)).artifact;
  const MethodRequest same = recalibration_request(made, {}, {});
  EXPECT_EQ(same.text("joint"), "each");
  EXPECT_EQ(resolve(same), made.method);
  const MethodRequest other = recalibration_request(made, joint("all"), {"joint"});
  EXPECT_EQ(resolve(other).score.targets, 0U);
}

void expect_refused(const MethodRequest& method, const MemoryRows& rows, const std::string& why) {
  EXPECT_THAT([&] { calibrated(method, rows); }, ThrowsMessage<Error>(HasSubstr(why)));
}

TEST(Joint, WhatCannotBeIsRefused) {
  const auto rows = [](int64_t targets = 2) { return pair_rows(Errors::kApart, 300, 10, targets); };
  expect_refused(joint("each", "nested"), rows(), "applies only to auto, residual");
  expect_refused(joint("each", "ellipsoid"), rows(), "take volume");
  expect_refused(joint("volume", "spread"), rows(), "is the score ellipsoid");
  expect_refused(joint("auto", "spread"), rows(), "auto chooses the score");
  expect_refused(joint("volume"), rows(), "too few to learn");
  expect_refused(joint("each", "residual"), rows(1), "for several targets; the data has one");
  expect_refused(joint("volume"), rows(1), "for several targets; the data has one");
  expect_refused(joint("auto"), rows(1), "this network answers labels");
  MethodRequest one_end = joint("volume");
  one_end.set("side", "upper");
  expect_refused(one_end, rows(), "an ellipsoid has no one end");
  MethodRequest parts = joint("each", "density");
  parts.set("union", true);
  expect_refused(parts, rows(), "leave out union");
}

}  // namespace
}  // namespace fcp
