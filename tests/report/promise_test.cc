#include "fcp/report/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/evaluation/beta.h"

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
  EXPECT_EQ(coverage_verdict(report), Verdict::kAsExpected);
  coverage = coverage_of(8000, 10000);
  EXPECT_EQ(coverage_verdict(report), Verdict::kTooLow);
  EXPECT_THAT(verdict_text(report), HasSubstr("probably not drawn"));
  coverage = coverage_of(9900, 10000);
  EXPECT_EQ(coverage_verdict(report), Verdict::kTooHigh);
  coverage = coverage_of(8, 10);  // ten rows prove nothing
  EXPECT_EQ(coverage_verdict(report), Verdict::kAsExpected);
}

TEST(Verdict, IsUnknownWhereNothingIsPromised) {
  IntervalReport report = testing::sample_report(1000, 500);
  report.methods[0].guaranteed = false;
  EXPECT_EQ(coverage_verdict(report), Verdict::kUnknown);
  EXPECT_EQ(verdict_text(report), "");
  EXPECT_THAT(guaranteed_texts(report), ::testing::ElementsAre(HasSubstr("no guarantee")));
  report.methods[0].guaranteed = true;
  report.methods[0].radius = std::nullopt;
  EXPECT_EQ(coverage_verdict(report), Verdict::kUnknown);
}

TEST(InfiniteRadius, SaysWhy) {
  IntervalReport report = testing::sample_report(100, 50);
  EXPECT_EQ(infinite_radius_text(report), "");
  report.methods[0].radius = kInfinity;
  EXPECT_THAT(infinite_radius_text(report), HasSubstr("themselves infinite"));
  report.calibration_rows = 7;
  EXPECT_THAT(infinite_radius_text(report), HasSubstr("at least 9 calibration rows"));
}

TEST(Guarantee, NamesTheBetaLaw) {
  const IntervalReport report = testing::sample_report(1000, 500);
  EXPECT_THAT(guaranteed_texts(report).back(), HasSubstr("Beta(901, 100)"));
  EXPECT_THAT(not_guaranteed_texts(report).front(), HasSubstr("for each x"));
}

}  // namespace
}  // namespace fcp
