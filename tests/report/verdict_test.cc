#include "apps/report/verdict.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"

#include "label_samples.h"
#include "report_samples.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Every part is covered as it should be.
EvaluationReport even_report() {
  EvaluationReport report = testing::sample_report(1000, 600);
  auto& result = std::get<IntervalEvaluation>(report.methods[0].evaluation);
  result.coverage = coverage_of(900, 1000);
  result.response_thirds = {{"lower third", coverage_of(270, 300)},
                            {"upper third", coverage_of(270, 300)}};
  result.length_strata = {{1, 2, coverage_of(450, 500)}, {2, 3, coverage_of(450, 500)}};
  result.groups.clear();
  return report;
}

ReportVerdict verdict_on(const EvaluationReport& report) {
  return verdict_of(report, claim_of(report));
}

TEST(ReportVerdict, SaysThatThePromiseIsKept) {
  const ReportVerdict verdict = verdict_on(even_report());
  EXPECT_EQ(verdict.tone, Tone::kKept);
  EXPECT_EQ(verdict.headline,
            "The guarantee holds: 90.0 % of 1,000 test rows are covered (target 90 %).");
  EXPECT_THAT(verdict.watched, IsEmpty());
  EXPECT_THAT(verdict_html(verdict), HasSubstr("nothing to watch"));
  EXPECT_THAT(verdict_html(verdict), Not(HasSubstr("role=\"alert\"")));
}

TEST(ReportVerdict, NamesThePartToWatchAndTheCure) {
  EvaluationReport report = even_report();
  auto& result = std::get<IntervalEvaluation>(report.methods[0].evaluation);
  result.length_strata[1].coverage = coverage_of(400, 500);
  result.groups = {{"<north>", coverage_of(60, 100)}, {"south", coverage_of(90, 100)}};
  const ReportVerdict verdict = verdict_on(report);
  EXPECT_EQ(verdict.tone, Tone::kWatch);
  ASSERT_EQ(verdict.watched.size(), 2u);
  EXPECT_EQ(verdict.watched[0].what, "group <north>: 60.0 % of 100 rows covered (target 90 %)");
  EXPECT_THAT(verdict.watched[0].cure, HasSubstr("--calibration grouped --group COLUMN"));
  EXPECT_THAT(verdict.watched[1].what, HasSubstr("intervals of length 2.00–3.00: 80.0 %"));
  EXPECT_THAT(verdict.watched[1].cure, HasSubstr("rectified"));
  EXPECT_THAT(verdict_html(verdict), HasSubstr("group &lt;north&gt;: 60.0&nbsp;% of 100 rows"));
}

TEST(ReportVerdict, NamesTheClassOfLabelSets) {
  EvaluationReport report = testing::sample_label_report(1000, 600);
  auto& result = std::get<SetEvaluation>(report.methods[0].evaluation);
  result.coverage = coverage_of(900, 1000);
  result.class_coverage = {{"cat", coverage_of(90, 100)}, {"dog", coverage_of(50, 100)}};
  result.size_strata = {{0, 0, coverage_of(0, 20)}};
  const ReportVerdict verdict = verdict_on(report);
  ASSERT_EQ(verdict.watched.size(), 2u);
  EXPECT_THAT(verdict.watched[0].what, HasSubstr("class dog"));
  EXPECT_THAT(verdict.watched[0].cure, HasSubstr("--calibration grouped --group label"));
  EXPECT_THAT(verdict.watched[1].what, HasSubstr("empty sets: 0.0 %"));
}

TEST(ReportVerdict, IsLoudWhereThePromiseIsBroken) {
  EvaluationReport report = even_report();
  std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage = coverage_of(700, 1000);
  const ReportVerdict verdict = verdict_on(report);
  EXPECT_EQ(verdict.tone, Tone::kBroken);
  EXPECT_THAT(verdict.headline, HasSubstr("fails on these rows: 70.0 %"));
  EXPECT_THAT(verdict.cure, HasSubstr("fcp update"));
  EXPECT_THAT(verdict_html(verdict), HasSubstr("role=\"alert\""));
  // Where each row has a radius of its own no law is known, and the target alone decides.
  report.methods[0].radius = std::nullopt;
  EXPECT_EQ(verdict_on(report).tone, Tone::kBroken);
  std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage = coverage_of(895, 1000);
  EXPECT_EQ(verdict_on(report).tone, Tone::kKept);
}

// After a split at random coverage that is too low is chance, and nothing is broken.
TEST(ReportVerdict, OfARandomSplitIsChance) {
  EvaluationReport report = even_report();
  report.origin = RowsOrigin::kRandomSplit;
  std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage = coverage_of(840, 1000);
  const ReportVerdict verdict = verdict_on(report);
  EXPECT_EQ(verdict.tone, Tone::kWatch);
  EXPECT_THAT(verdict.headline, HasSubstr("lower than chance usually makes it: 84.0 %"));
  EXPECT_THAT(verdict.cure, HasSubstr("split at random"));
  for (const std::string& text : {verdict.headline, verdict.cure, verdict_text(claim_of(report)),
                                  alarm_text(claim_of(report))}) {
    EXPECT_THAT(text, Not(HasSubstr("not drawn as"))) << text;
  }
  EXPECT_THAT(verdict_text(claim_of(report)), HasSubstr("about one such split in"));
}

TEST(ReportVerdict, OfRowsThatMadeThePredictorSaysSo) {
  EvaluationReport report = even_report();
  report.origin = RowsOrigin::kCalibrationRows;
  EXPECT_THAT(verdict_on(report).headline, HasSubstr("rows that calibrated the predictor"));
  report.origin = RowsOrigin::kTrainingRows;
  std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage = coverage_of(999, 1000);
  EXPECT_THAT(verdict_on(report).headline, HasSubstr("trained on some of these rows"));
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kUnknown);
  EXPECT_EQ(alarm_text(claim_of(report)), "");
  EXPECT_FALSE(coverage_p_value(report).has_value());
}

TEST(ReportVerdict, OfCrossSaysWhichGuaranteeStands) {
  EvaluationReport report = even_report();
  report.methods[0].radius = std::nullopt;
  report.calibration_rows = 600;
  report.folds = 10;
  EXPECT_THAT(verdict_on(report).headline,
              HasSubstr("at least 77.0 % is guaranteed (cross), near 90 % is usual"));
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kAsExpected);
  Coverage& coverage = std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage;
  coverage = coverage_of(840, 1000);
  EXPECT_EQ(verdict_on(report).tone, Tone::kWatch) << "below 90 %, above the guarantee";
  EXPECT_THAT(verdict_on(report).cure, HasSubstr("--calibration split"));
  coverage = coverage_of(700, 1000);
  EXPECT_EQ(verdict_on(report).tone, Tone::kBroken);
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kTooLow);
}

// What fit advises is its own command with one more option.
TEST(ReportVerdict, AdvisesTheCommandThatWasGiven) {
  EvaluationReport report = even_report();
  report.command = "fcp fit d.csv --target y --out m.onnx";
  report.by_column = {{"the kind", {{"a", coverage_of(60, 100)}, {"b", coverage_of(90, 100)}}}};
  const ReportVerdict verdict = verdict_on(report);
  ASSERT_EQ(verdict.watched.size(), 1u);
  EXPECT_EQ(verdict.watched[0].what, "the kind = a: 60.0 % of 100 rows covered (target 90 %)");
  EXPECT_THAT(verdict.watched[0].cure,
              HasSubstr("fcp fit d.csv --target y --out m.onnx --cover-each 'the kind'"));
}

// 50 groups of 20 rows that are covered together: 1,000 rows that tell as much as 50.
TEST(ReportVerdict, RowsThatAreAlikeCountForLess) {
  EvaluationReport report = even_report();
  std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage = coverage_of(840, 1000);
  EXPECT_EQ(coverage_verdict(claim_of(report)), Verdict::kTooLow);
  const double alone = *coverage_p_value(report);
  report.rows_alike = 20;
  const Coverage fewer = worth(report.methods[0].coverage(), 20);
  EXPECT_EQ(fewer.rows, 50u);
  EXPECT_EQ(fewer.covered, 42u);
  EXPECT_GT(*coverage_p_value(report), 100 * alone);
  EXPECT_GT(*coverage_p_value(report), 0.05);
}

TEST(ReportVerdict, NothingIsPromisedOrNothingIsSaid) {
  EvaluationReport report = even_report();
  report.methods[0].guaranteed = false;
  EXPECT_EQ(verdict_on(report).tone, Tone::kWatch);
  EXPECT_THAT(verdict_on(report).headline, HasSubstr("Nothing is guaranteed here"));
  report = even_report();
  report.methods[0].radius = testing::kInfinity;
  EXPECT_EQ(verdict_on(report).tone, Tone::kBroken);
  EXPECT_EQ(verdict_on(report).headline, "The intervals say nothing: the radius is infinite.");
}

TEST(ReportVerdict, OfGroupsSaysWhichPromiseIsBroken) {
  EvaluationReport report = even_report();
  report.methods[0].radius = std::nullopt;
  report.guaranteed_groups = {{"red", 400, coverage_of(300, 400)},
                              {"blue", 600, coverage_of(590, 600)}};
  EXPECT_EQ(verdict_on(report).headline, "The guarantee fails in some groups.");
}

// Eight parts of 200 rows that are covered at the target rate: a report names one of them at most
// once in twenty. Of 2,000 reports the number that do is at most Binomial(2000, 0.05), which
// exceeds 155 with a probability below 1e-7.
TEST(ReportVerdict, EvenCoverageIsRarelyWatched) {
  Random random(3);
  EvaluationReport report = even_report();
  auto& result = std::get<IntervalEvaluation>(report.methods[0].evaluation);
  result.length_strata.clear();
  size_t watched = 0;
  for (int i = 0; i < 2000; ++i) {
    result.response_thirds.clear();
    for (int part = 0; part < 8; ++part) {
      size_t covered = 0;
      for (int row = 0; row < 200; ++row) covered += random.uniform() < 0.9;
      result.response_thirds.push_back({"part", coverage_of(covered, 200)});
    }
    watched += !verdict_on(report).watched.empty();
  }
  EXPECT_LE(watched, 155u);
  EXPECT_GT(watched, 10u);
}

}  // namespace
}  // namespace fcp
