#include "apps/report/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "label_samples.h"
#include "report_samples.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using testing::kInfinity;

TEST(Verdict, FollowsTheConfidenceInterval) {
  EvaluationReport report = testing::sample_report(1000, 500);
  Coverage& coverage = std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage;
  coverage = coverage_of(9000, 10000);
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kAsExpected);
  coverage = coverage_of(8000, 10000);
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kTooLow);
  EXPECT_THAT(verdict_text(claim_of(report)), HasSubstr("probably not drawn"));
  coverage = coverage_of(9900, 10000);
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kTooHigh);
  coverage = coverage_of(8, 10);  // ten rows prove nothing
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kAsExpected);
}

TEST(Verdict, IsUnknownWhereNothingIsPromised) {
  EvaluationReport report = testing::sample_report(1000, 500);
  report.methods[0].guaranteed = false;
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kUnknown);
  EXPECT_EQ(verdict_text(claim_of(report)), "");
  EXPECT_THAT(guaranteed_texts(claim_of(report)),
              ::testing::ElementsAre(HasSubstr("no guarantee")));
  report.methods[0].guaranteed = true;
  report.methods[0].radius = std::nullopt;
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kUnknown);
}

TEST(InfiniteRadius, SaysWhy) {
  EvaluationReport report = testing::sample_report(100, 50);
  EXPECT_EQ(infinite_radius_text(claim_of(report)), "");
  report.methods[0].radius = kInfinity;
  EXPECT_THAT(infinite_radius_text(claim_of(report)), HasSubstr("themselves infinite"));
  report.calibration_rows = 7;
  EXPECT_THAT(infinite_radius_text(claim_of(report)), HasSubstr("at least 9 calibration rows"));
}

TEST(InfiniteRadius, OfLabelSetsSaysThatTheyHoldEveryLabel) {
  EvaluationReport report = testing::sample_label_report(100, 50);
  EXPECT_EQ(infinite_radius_text(claim_of(report)), "");
  report.methods[0].radius = kInfinity;
  EXPECT_THAT(infinite_radius_text(claim_of(report)), HasSubstr("Every set holds every label"));
}

TEST(Verdict, OfLabelSetsIsTheSame) {
  EvaluationReport report = testing::sample_label_report(1000, 500);
  std::get<SetEvaluation>(report.methods[0].evaluation).coverage = coverage_of(8000, 10000);
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kTooLow);
  report.methods[0].guaranteed = false;
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kUnknown);
}

TEST(Verdict, SetsOfSingleAnswersAreRightMoreOften) {
  EvaluationReport report = testing::sample_label_report(1000, 500);
  std::get<SetEvaluation>(report.methods[0].evaluation).coverage = coverage_of(9900, 10000);
  EXPECT_THAT(verdict_text(claim_of(report)), HasSubstr("are easier than"));
  report.methods[0].radius = 0.0;
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kTooHigh);
  EXPECT_THAT(verdict_text(claim_of(report)),
              HasSubstr("single prediction, which is right more often"));
}

TEST(Guarantee, OfLabelSetsSpeaksOfLabels) {
  const EvaluationReport report = testing::sample_label_report(1000, 500);
  const Claim claim = claim_of(report);
  EXPECT_THAT(guaranteed_texts(claim).front(), HasSubstr("true label lies in its set"));
  EXPECT_THAT(guaranteed_texts(claim).back(), HasSubstr("Beta(901, 100)"));
  EXPECT_THAT(not_guaranteed_texts(claim).front(), HasSubstr("each class"));
  for (const auto& texts : {guaranteed_texts(claim), not_guaranteed_texts(claim)}) {
    for (const std::string& text : texts) EXPECT_THAT(text, ::testing::Not(HasSubstr("interval")));
  }
}

TEST(Guarantee, NamesTheBetaLaw) {
  const EvaluationReport report = testing::sample_report(1000, 500);
  EXPECT_THAT(guaranteed_texts(claim_of(report)).back(), HasSubstr("Beta(901, 100)"));
  EXPECT_THAT(not_guaranteed_texts(claim_of(report)).front(), HasSubstr("for each x"));
}

// One group alone has drifted: its name is in the verdict.
EvaluationReport grouped_report(size_t covered) {
  EvaluationReport report = testing::sample_report(1000, 500);
  report.methods[0].radius = std::nullopt;
  report.guaranteed_groups = {
      {"red", 400, coverage_of(covered, 400)}, {"blue", 600, coverage_of(182, 200)}, {"rare", 5}};
  return report;
}

TEST(Guarantee, ListsItsGroups) {
  const Claim claim = claim_of(grouped_report(361));
  EXPECT_THAT(guaranteed_texts(claim)[1],
              HasSubstr("red (400 calibration rows), blue (600 calibration rows), rare (5 "
                        "calibration rows, too few: everything is in)."));
  EXPECT_THAT(not_guaranteed_texts(claim).front(),
              HasSubstr("parts other than the groups that are guaranteed"));
  EXPECT_THAT(not_guaranteed_texts(claim).front(), ::testing::Not(HasSubstr("for each group")));
}

TEST(Guarantee, OfClassesListsThem) {
  EvaluationReport report = testing::sample_label_report(1000, 500);
  report.methods[0].radius = std::nullopt;
  report.guaranteed_groups = {{"cat", 400}, {"dog", 600}};
  report.guaranteed_classes = true;
  const Claim claim = claim_of(report);
  EXPECT_THAT(guaranteed_texts(claim)[1], HasSubstr("each of these classes alone"));
  EXPECT_THAT(not_guaranteed_texts(claim).front(), HasSubstr("other than the classes that are"));
}

TEST(Guarantee, OfImagesSpeaksOfPixels) {
  EvaluationReport report;
  PixelEvaluation figures;
  figures.share = 0.9;
  figures.sets = true;
  figures.coverage = figures.whole = coverage_of(91, 100);
  MethodResult lac;
  lac.name = "lac";
  lac.evaluation = figures;
  lac.radius = 1;
  report.methods = {lac};
  report.calibration_rows = 100;
  EXPECT_THAT(guaranteed_texts(claim_of(report)).front(),
              HasSubstr("In a new image at least 90.0 % of the labelled pixels have their label in "
                        "their set with probability at least 90 %, if it and the calibration "
                        "images are exchangeable"));
  EXPECT_THAT(not_guaranteed_texts(claim_of(report)).front(), HasSubstr("each pixel"));
}

TEST(Verdict, OfGroupsNamesTheWorst) {
  EXPECT_EQ(coverage_verdict(claim_of(grouped_report(361))), Verdict::kAsExpected);
  EXPECT_EQ(alarm_text(claim_of(grouped_report(361))), "");
  const Claim claim = claim_of(grouped_report(300));
  EXPECT_EQ(coverage_verdict(claim), Verdict::kTooLow);
  EXPECT_THAT(alarm_text(claim), HasSubstr("Coverage is too low in group red, with 400"));
}

TEST(Alarm, IsSilentWhereCoverageIsAsExpected) {
  EvaluationReport report = testing::sample_report(1000, 500);
  Coverage& coverage = std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage;
  coverage = coverage_of(9000, 10000);
  EXPECT_EQ(alarm_text(claim_of(report)), "");
  coverage = coverage_of(8000, 10000);
  EXPECT_THAT(alarm_text(claim_of(report)), HasSubstr("coverage is too low. With 1,000"));
  EXPECT_THAT(alarm_text(claim_of(report)), HasSubstr("The probability of a coverage this low is"));
  coverage = coverage_of(9900, 10000);
  EXPECT_THAT(alarm_text(claim_of(report)), HasSubstr("coverage is too high."));
  report.methods[0].guaranteed = false;
  EXPECT_EQ(alarm_text(claim_of(report)), "");
}

}  // namespace
}  // namespace fcp
