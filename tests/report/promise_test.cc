#include "fcp/report/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/evaluation/beta.h"

#include "label_samples.h"
#include "report_samples.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using testing::kInfinity;

TEST(ExpectedCoverage, IsTheBetaRange) {
  const auto expected = expected_coverage(Level(0.1), 1000);
  ASSERT_TRUE(expected);
  EXPECT_NEAR(beta_cdf(expected->low, 901, 100), 0.05, 1e-9);
  EXPECT_NEAR(beta_cdf(expected->high, 901, 100), 0.95, 1e-9);
}

TEST(ExpectedCoverage, DoesNotExistForTooFewRows) {
  EXPECT_FALSE(expected_coverage(Level(0.1), 8));
  EXPECT_TRUE(expected_coverage(Level(0.1), 9));
  EXPECT_FALSE(expected_coverage(Level(0.1), 0));
}

TEST(Verdict, FollowsTheConfidenceInterval) {
  IntervalReport report = testing::sample_report(1000, 500);
  Coverage& coverage = report.methods[0].evaluation.coverage;
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
  IntervalReport report = testing::sample_report(1000, 500);
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
  IntervalReport report = testing::sample_report(100, 50);
  EXPECT_EQ(infinite_radius_text(claim_of(report)), "");
  report.methods[0].radius = kInfinity;
  EXPECT_THAT(infinite_radius_text(claim_of(report)), HasSubstr("themselves infinite"));
  report.calibration_rows = 7;
  EXPECT_THAT(infinite_radius_text(claim_of(report)), HasSubstr("at least 9 calibration rows"));
}

TEST(InfiniteRadius, OfLabelSetsSaysThatTheyHoldEveryLabel) {
  LabelReport report = testing::sample_label_report(100, 50);
  EXPECT_EQ(infinite_radius_text(claim_of(report)), "");
  report.methods[0].radius = kInfinity;
  EXPECT_THAT(infinite_radius_text(claim_of(report)), HasSubstr("Every set holds every label"));
}

TEST(Verdict, OfLabelSetsIsTheSame) {
  LabelReport report = testing::sample_label_report(1000, 500);
  report.methods[0].evaluation.coverage = coverage_of(8000, 10000);
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kTooLow);
  report.methods[0].guaranteed = false;
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kUnknown);
}

TEST(Guarantee, OfLabelSetsSpeaksOfLabels) {
  const LabelReport report = testing::sample_label_report(1000, 500);
  const Claim claim = claim_of(report);
  EXPECT_THAT(guaranteed_texts(claim).front(), HasSubstr("true label lies in its set"));
  EXPECT_THAT(guaranteed_texts(claim).back(), HasSubstr("Beta(901, 100)"));
  EXPECT_THAT(not_guaranteed_texts(claim).front(), HasSubstr("each class"));
  for (const auto& texts : {guaranteed_texts(claim), not_guaranteed_texts(claim)}) {
    for (const std::string& text : texts) EXPECT_THAT(text, ::testing::Not(HasSubstr("interval")));
  }
}

TEST(Guarantee, NamesTheBetaLaw) {
  const IntervalReport report = testing::sample_report(1000, 500);
  EXPECT_THAT(guaranteed_texts(claim_of(report)).back(), HasSubstr("Beta(901, 100)"));
  EXPECT_THAT(not_guaranteed_texts(claim_of(report)).front(), HasSubstr("for each x"));
}

}  // namespace
}  // namespace fcp
