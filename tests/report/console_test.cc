#include "apps/report/console.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/text_table.h"

#include "apps/report/results.h"
#include "report_samples.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using testing::kInfinity;
using testing::kNaN;
using ::testing::Not;

TEST(Format, Numbers) {
  EXPECT_EQ(format_number(1.75284), "1.753");
  EXPECT_EQ(format_number(-0.0812), "−0.08120");
  EXPECT_EQ(format_number(1234.5678), "1,235");
  EXPECT_EQ(format_number(98765.4), "98,765");
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(1234567), "1,234,567");
  EXPECT_EQ(format_number(-123456.7), "−123,457");
  EXPECT_EQ(format_number(1234567891), "1.235e9");
  EXPECT_EQ(format_number(0.00001234), "1.234e−5");
  EXPECT_EQ(format_number(1e300, 2), "1.0e300");
  EXPECT_EQ(format_number(kInfinity), "∞");
  EXPECT_EQ(format_number(-kInfinity), "−∞");
  EXPECT_EQ(format_number(kNaN), "–");
}

TEST(Format, SharesAndCounts) {
  EXPECT_EQ(format_percent(0.9034), "90.3 %");
  EXPECT_EQ(format_percent(-0.05), "−5.0 %");
  EXPECT_EQ(format_percent_range(0.891, 0.9142), "89.1–91.4 %");
  EXPECT_EQ(format_target(Level(0.1)), "90 %");
  EXPECT_EQ(format_target(Level(0.001)), "99.9 %");
  EXPECT_EQ(format_target(Level::fraction(1, 3)), "66.6667 %");
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(123456), "123,456");
  EXPECT_EQ(format_count(1, "row"), "1 row");
  EXPECT_EQ(format_count(1000, "row"), "1,000 rows");
}

TEST(Format, DisplayWidthCountsCharacters) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("± – ∞"), 5u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
}

TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({"method", "length", "±"});
  table.add_row({"nested", "1.75", "0.01"});
  table.add_gap();
  table.add_row({"Größe", "∞"});
  EXPECT_EQ(table.text(1),
            " method  length     ±\n"
            " ────────────────────\n"
            " nested    1.75  0.01\n"
            "\n"
            " Größe        ∞\n");
}

// A cell may be any text, as the settings of a predictor are.
TEST(Table, ItsRuleDoesNotFollowLongCells) {
  const std::string settings(1000, 'x');
  Table unnamed({"", ""}), named({"name", "settings"});
  unnamed.add_row({"settings", settings});
  named.add_row({"a", settings});
  EXPECT_EQ(unnamed.text(), "settings  " + settings + "\n");
  EXPECT_EQ(display_width(named.text()), display_width("name  settings\n") + 101 + 6 + 1001);
}

TEST(Table, RefusesTooManyCells) {
  Table table({"a"});
  EXPECT_THROW(table.add_row({"1", "2"}), std::invalid_argument);
}

std::string printed(const IntervalEvaluation& evaluation, const PrintOptions& options = {}) {
  std::ostringstream out;
  print_evaluation(out, evaluation, options);
  return out.str();
}

TEST(PrintEvaluation, SaysTheHeadlineAndTheParts) {
  const IntervalEvaluation evaluation = testing::sample_report().methods[0].intervals();
  const std::string text = printed(evaluation);
  EXPECT_THAT(text, HasSubstr(format_percent(evaluation.coverage.rate) + "  target 90 %, 95 % CI"));
  EXPECT_THAT(text, HasSubstr("median " + format_number(*evaluation.length.median)));
  EXPECT_THAT(text, HasSubstr("upper third"));
  EXPECT_THAT(text, HasSubstr("group blue & white"));
  EXPECT_THAT(text, HasSubstr("worst"));
  EXPECT_THAT(text, Not(HasSubstr("infinite")));
}

TEST(PrintEvaluation, MentionsInfiniteIntervalsWhereThereAreSome) {
  const std::vector<double> lower = {0, -kInfinity}, upper = {1, 1}, truth = {0.5, 0};
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  const std::string text = printed(evaluate_intervals(rows, 1));
  EXPECT_THAT(text, HasSubstr("50.0 %   of the intervals; mean length of the others 1.000"));
  EXPECT_THAT(text, HasSubstr("∞"));
  EXPECT_THAT(text, Not(HasSubstr("inf ")));
}

TEST(PrintEvaluation, AmongEqualsNoneIsTheWorst) {
  const std::vector<double> lower = {0, 0, 0}, upper = {1, 2, 3}, truth = {0, 1, 2};
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  EXPECT_THAT(printed(evaluate_intervals(rows, 1)), Not(HasSubstr("worst")));
}

TEST(PrintEvaluation, OfManyGroupsOnlyTheWorst) {
  PrintOptions options;
  options.most_groups = 2;
  const std::string text = printed(testing::sample_report().methods[0].intervals(), options);
  EXPECT_THAT(text, HasSubstr("worst of 3 groups"));
}

TEST(PrintEvaluation, LabelSets) {
  const std::vector<uint8_t> members = {1, 0, 1, 1};
  const std::vector<int64_t> truth = {0, 1};
  LabelSetBatch rows;
  rows.members = members;
  rows.truth = truth;
  std::ostringstream out;
  print_evaluation(out, evaluate_sets(rows, 2));
  EXPECT_THAT(out.str(), HasSubstr("set size        1.500"));
  EXPECT_THAT(out.str(), HasSubstr("50.0 %   of the sets hold every label"));
  EXPECT_THAT(out.str(), HasSubstr("label 1"));
  EXPECT_THAT(out.str(), HasSubstr("size 1 "));
}

std::string printed_report(const EvaluationReport& report) {
  std::ostringstream out;
  print_report(out, report);
  return out.str();
}

TEST(PrintReport, SaysEachMethodAndNoVerdictWhereAllIsWell) {
  const std::string text = printed_report(testing::sample_report());
  EXPECT_THAT(text, ::testing::StartsWith("nested\ncoverage"));
  EXPECT_THAT(text, HasSubstr("\n\nresidual\ncoverage"));
  EXPECT_THAT(text, Not(HasSubstr("verdict")));
}

TEST(PrintReport, SaysThatTheWorldHasShifted) {
  EvaluationReport report = testing::sample_report();
  std::get<IntervalEvaluation>(report.methods[0].evaluation).coverage = coverage_of(700, 1000);
  EXPECT_THAT(printed_report(report), HasSubstr("\nverdict: coverage is too low. With 500 "));
}

TEST(PrintReport, RefusesAReportOfNothing) {
  EXPECT_THROW(printed_report({}), std::invalid_argument);
}

TEST(Format, Strata) {
  EXPECT_EQ(format_lengths({0.5, 1.75, {}}), "0.500–1.75");
  EXPECT_EQ(format_lengths({2, 2, {}}), "2.00");
  EXPECT_EQ(format_sizes({2, 1000, {}}), "2–1,000");
  EXPECT_EQ(format_sizes({0, 0, {}}), "0");
}

// The vectors of RFC 4648, section 10, and bytes that are no text.
TEST(Format, Base64) {
  EXPECT_EQ(base64_text(""), "");
  EXPECT_EQ(base64_text("f"), "Zg==");
  EXPECT_EQ(base64_text("fo"), "Zm8=");
  EXPECT_EQ(base64_text("foo"), "Zm9v");
  EXPECT_EQ(base64_text("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_text("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64_text("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_text(std::string("\xfb\xff\xfe\0", 4)), "+//+AA==");
}

}  // namespace
}  // namespace fcp
