// What a second calibration keeps of the first.
#include "fcp/calibration/recalibration.h"

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/calibration/options.h"

namespace fcp {
namespace {

CalibrationArtifact calibrated() {
  CalibrationArtifact artifact;
  artifact.score.name = "nested";
  artifact.score.norm = Norm::kTwo;
  artifact.score.bound.method = BoundMethod::kIbp;
  artifact.score.scale = {1, 2};
  artifact.cut = "h1";
  artifact.calibration.name = "localized";
  artifact.calibration.bandwidth = 0.7;
  return artifact;
}

TEST(Recalibration, KeepsScoreCutAndOptions) {
  MethodRequest asked;
  asked.score.seed = 5;
  const MethodRequest request = recalibration_request(calibrated(), asked, {});
  check_options(request);
  EXPECT_EQ(request.score.name, "nested");
  EXPECT_EQ(request.score.norm, Norm::kTwo);
  EXPECT_EQ(request.score.scale, (std::vector<double>{1, 2}));
  EXPECT_EQ(std::get<std::string>(request.cut), "h1");
  EXPECT_EQ(request.calibration.name, "localized");
  EXPECT_EQ(request.bandwidth, 0.7);
  EXPECT_EQ(request.score.seed, 5u);
}

TEST(Recalibration, WhatIsToldGoesFirst) {
  MethodRequest asked;
  asked.score.norm = Norm::kInf;
  asked.cut = AutoCut{};
  asked.calibration.name = "split";
  const MethodRequest request =
      recalibration_request(calibrated(), asked, {"norm", "cut", "calibration"});
  check_options(request);
  EXPECT_EQ(request.score.name, "nested");
  EXPECT_EQ(request.score.norm, Norm::kInf);
  EXPECT_TRUE(std::holds_alternative<AutoCut>(request.cut));
  EXPECT_EQ(request.calibration.name, "split");
  EXPECT_FALSE(request.bandwidth);
}

TEST(Recalibration, MayChooseTheScoreAnew) {
  MethodRequest asked;
  asked.score.name = kAutoScore;
  const MethodRequest request = recalibration_request(calibrated(), asked, {"score"});
  check_options(request);
  EXPECT_EQ(request.score.name, kAutoScore);
  EXPECT_TRUE(std::holds_alternative<DefaultCut>(request.cut));
}

TEST(Recalibration, AnotherScoreBringsItsDefaults) {
  MethodRequest asked;
  asked.score.name = "residual";
  const MethodRequest residual = recalibration_request(calibrated(), asked, {"score"});
  check_options(residual);
  EXPECT_EQ(residual.score.norm, ScoreOptions().norm);
  EXPECT_TRUE(std::holds_alternative<DefaultCut>(residual.cut));
  asked.score.name = "linearized";
  EXPECT_EQ(std::get<std::string>(recalibration_request(calibrated(), asked, {"score"}).cut), "h1");
}

// The rows that trained a network are not asked for again.
TEST(Recalibration, CrossStaysOnlyWithTheRowsThatTrained) {
  CalibrationArtifact crossed;
  crossed.score.name = kCrossScore;
  crossed.calibration.name = kCrossScore;
  crossed.calibration.folds = 10;
  MethodRequest asked;
  EXPECT_THROW(check_options(recalibration_request(crossed, asked, {})), OptionError);
  asked.score.name = "residual";
  const MethodRequest residual = recalibration_request(crossed, asked, {"score"});
  check_options(residual);
  EXPECT_EQ(residual.calibration.name, "split");
  EXPECT_EQ(residual.calibration.folds, 0u);
}

}  // namespace
}  // namespace fcp
