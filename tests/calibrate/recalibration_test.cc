// What a second calibration keeps of the first.
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/calibrate/update.h"
#include "fcp/methods/options.h"

namespace fcp {
namespace {

CalibrationArtifact calibrated() {
  CalibrationArtifact artifact;
  artifact.method.score = NestedOptions{.norm = Norm::kTwo, .scale = {1, 2}};
  artifact.method.cut = "h1";
  artifact.method.calibration = LocalizedOptions{.bandwidth = 0.7};
  return artifact;
}

TEST(Recalibration, KeepsScoreCutAndOptions) {
  MethodRequest asked;
  asked.set("seed", 5);
  const MethodRequest request = recalibration_request(calibrated(), asked, {});
  check_options(request);
  EXPECT_EQ(request.score, "nested");
  EXPECT_EQ(request.text("norm"), "2");
  EXPECT_EQ(request.scale, (std::vector<double>{1, 2}));
  EXPECT_EQ(std::get<std::string>(request.cut), "h1");
  EXPECT_EQ(request.calibration, "localized");
  EXPECT_EQ(request.number("bandwidth"), 0.7);
  EXPECT_EQ(request.whole("seed"), 5u);
}

TEST(Recalibration, WhatIsToldGoesFirst) {
  MethodRequest asked;
  asked.set("norm", "inf");
  asked.cut = AutoCut{};
  asked.calibration = "split";
  const MethodRequest request =
      recalibration_request(calibrated(), asked, {"norm", "cut", "calibration"});
  check_options(request);
  EXPECT_EQ(request.score, "nested");
  EXPECT_EQ(request.text("norm"), "inf");
  EXPECT_TRUE(std::holds_alternative<AutoCut>(request.cut));
  EXPECT_EQ(request.calibration, "split");
  EXPECT_TRUE(request.is_auto("bandwidth"));
}

TEST(Recalibration, MayChooseTheScoreAnew) {
  MethodRequest asked;
  asked.score = kAutoScore;
  const MethodRequest request = recalibration_request(calibrated(), asked, {"score"});
  check_options(request);
  EXPECT_EQ(request.score, kAutoScore);
  EXPECT_TRUE(std::holds_alternative<DefaultCut>(request.cut));
}

TEST(Recalibration, AnotherScoreBringsItsDefaults) {
  MethodRequest asked;
  asked.score = "residual";
  const MethodRequest residual = recalibration_request(calibrated(), asked, {"score"});
  check_options(residual);
  EXPECT_EQ(residual.text("norm"), "inf");
  EXPECT_TRUE(std::holds_alternative<DefaultCut>(residual.cut));
  asked.score = "linearized";
  EXPECT_EQ(std::get<std::string>(recalibration_request(calibrated(), asked, {"score"}).cut), "h1");
}

// The rows that trained a network are not asked for again.
TEST(Recalibration, CrossStaysOnlyWithTheRowsThatTrained) {
  CalibrationArtifact crossed;
  crossed.method.score = CrossOptions{};
  crossed.method.calibration = CrossFoldOptions{.folds = 10};
  MethodRequest asked;
  EXPECT_THROW(check_options(recalibration_request(crossed, asked, {})), OptionError);
  asked.score = "residual";
  const MethodRequest residual = recalibration_request(crossed, asked, {"score"});
  check_options(residual);
  EXPECT_EQ(residual.calibration, "split");
}

}  // namespace
}  // namespace fcp
