#include "apps/report/page.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/report/results.h"
#include "page_checks.h"
#include "report_samples.h"

namespace fcp {
namespace {

using testing::count_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kInfinity;
using ::testing::Not;
using testing::sample_report;

constexpr std::array kSections = {"headline", "levels",  "charts",    "parts",
                                  "methods",  "promise", "provenance"};

TEST(EscapeText, LeavesNoMarkup) {
  EXPECT_EQ(escape_text("a<b> & \"c\" 'd' ≤"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; ≤");
  EXPECT_EQ(escape_text(std::string("a\0b\x1b\nc", 6)), "ab\nc");
}

TEST(HtmlPage, TextIsEscaped) {
  EXPECT_EQ(html_text("a < 5 %"), "a &lt; 5&nbsp;%");
  const std::vector<std::string> headers = {"<h>"};
  const std::vector<std::vector<std::string>> rows = {{"<r>", "<c>"}};
  const std::string table = html_table(headers, rows);
  for (const char* raw : {"<h>", "<r>", "<c>"}) EXPECT_THAT(table, Not(HasSubstr(raw)));
}

TEST(HtmlPage, SentencesInTablesAreSetToTheLeft) {
  const std::vector<std::string> headers = {"name", "number", "meaning"};
  const std::vector<std::vector<std::string>> rows = {
      {"a", "1", "a sentence that is much too long for one line of a table"}, {"b", "2", "short"}};
  const std::string table = html_table(headers, rows);
  EXPECT_EQ(count_of(table, "class=\"prose\""), 3u);
  EXPECT_THAT(table, HasSubstr("<td>1</td>"));
}

TEST(HtmlPage, AFigureLeftOverStandsAlone) {
  const Figure figure{.caption = "c", .chart = {"parts", "/thirds"}};
  const Figure wide{.caption = "w", .chart = {"parts", "/thirds"}, .wide = true};
  EXPECT_EQ(count_of(html_figures(std::vector{wide, figure, figure}), "alone"), 0u);
  EXPECT_EQ(count_of(html_figures(std::vector{wide, figure, figure, figure}), "alone"), 1u);
}

TEST(IntervalPage, HasAllSectionsAndCharts) {
  const std::string html = report_html(sample_report());
  for (const char* id : kSections) {
    EXPECT_THAT(html, HasSubstr(std::string("<section id=\"") + id + "\">"));
  }
  EXPECT_THAT(testing::kinds_of(html), ElementsAre("sample", "scatter", "curve", "histogram",
                                                   "histogram", "parts", "parts", "parts"));
  EXPECT_THAT(html, HasSubstr("Beta(451, 50)"));
  EXPECT_THAT(html, Not(HasSubstr("role=\"alert\"")));
}

TEST(IntervalPage, EscapesEverythingGiven) {
  EvaluationReport report = sample_report();
  report.response = "<i>y</i>";
  report.methods[0].name = "<u>nested</u>";
  report.notes = {"<em>note</em>"};
  report.provenance = {{"<key>", "<value>"}};
  const std::string html = report_html(report);
  for (const char* raw : {"<script>alert", "<i>", "<u>", "<em>", "<key>", "<value>", "<b>"}) {
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  }
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)"));
}

TEST(IntervalPage, IsWellFormedAndNeedsNoNetwork) {
  const std::string html = report_html(sample_report());
  testing::expect_well_formed(html);
  testing::expect_self_contained(html);
}

TEST(IntervalPage, AnInfiniteRadiusIsSaidLoudly) {
  const std::string html = report_html(sample_report(7, 20));
  EXPECT_THAT(html, HasSubstr("role=\"alert\""));
  EXPECT_THAT(html, HasSubstr("at least 9 calibration rows"));
  EXPECT_THAT(html, HasSubstr("∞"));
}

TEST(IntervalPage, OneRowAndNothingElse) {
  EvaluationReport report = sample_report(50, 1);
  report.methods.resize(1);
  report.methods[0].curve.clear();
  report.methods[0].scores.clear();
  report.methods[0].lengths.clear();
  report.examples.clear();
  report.provenance.clear();
  const std::string html = report_html(report);
  EXPECT_THAT(html, Not(HasSubstr("id=\"charts\"")));
  EXPECT_THAT(html, Not(HasSubstr("id=\"provenance\"")));
}

TEST(IntervalPage, ShowsBothCoveragesOfTheSurrogate) {
  EvaluationReport report = sample_report();
  report.methods[0].guaranteed = false;
  report.methods[0].detection = coverage_of(777, 1000);
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("77.7&nbsp;%"));
  EXPECT_THAT(html, HasSubstr("carry no guarantee"));
  EXPECT_FALSE(testing::page_json(html)["curve"][0].contains("expected_low"));
}

TEST(IntervalPage, OpensWithTheVerdictAndTheTargetsUnit) {
  EvaluationReport report = sample_report();
  report.model = "model<1>.onnx";
  std::get<IntervalEvaluation>(report.methods[0].evaluation).output_error = {{4.5, 3.25, 14.5}};
  const std::string html = report_html(report);
  EXPECT_LT(html.find("class=\"opening"), html.find("class=\"tiles\""));
  EXPECT_THAT(html, HasSubstr("· model&lt;1&gt;.onnx</h1>"));
  EXPECT_THAT(html, HasSubstr("Mean length in rentals"));
  EXPECT_THAT(html, HasSubstr("rentals has a standard deviation of 14.50"));
  EXPECT_THAT(html, HasSubstr("Error in rentals (RMSE)</span><span class=\"value\">4.500<"));
  EXPECT_THAT(html, HasSubstr("MAE 3.250"));
  EXPECT_THAT(html, Not(HasSubstr("<span class=\"label\">Radius")));
}

TEST(IntervalPage, ListsWhatAutoTried) {
  EvaluationReport report = sample_report();
  EXPECT_THAT(report_html(report), Not(HasSubstr("What auto tried")));
  report.candidates = {{"residual", 2, false}, {"<nested>", 1.6, true}};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("What auto tried"));
  EXPECT_THAT(html, HasSubstr("<tr class=\"current\"><th scope=\"row\">&lt;nested&gt; (chosen)"));
  EXPECT_THAT(html, HasSubstr("+25.0&nbsp;%"));
}

// A method that promises coverage for each group is not held against one that does not.
TEST(IntervalPage, GroupedMethodsAreNotComparedWithOthers) {
  EvaluationReport report = sample_report();
  EXPECT_THAT(report_html(report), Not(HasSubstr("not compared with it")));
  report.methods[0].radius = std::nullopt;
  report.guaranteed_groups = {{"red", 300, coverage_of(270, 300)}};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("promises coverage for each group"));
  const size_t row = html.find("<th scope=\"row\">residual</th>");
  EXPECT_THAT(html.substr(row, html.find("</tr>", row) - row), Not(HasSubstr("+")));
}

TEST(IntervalPage, LargeNumbersAreReadable) {
  EvaluationReport report = sample_report();
  auto& result = std::get<IntervalEvaluation>(report.methods[0].evaluation);
  result.length.mean = 1234567.8;
  EXPECT_THAT(report_html(report), HasSubstr("<span class=\"value\">1,234,568</span>"));
}

TEST(IntervalPage, EveryTargetIsPlottedByItsName) {
  const std::string html = report_html(testing::targets_report());
  testing::expect_well_formed(html);
  EXPECT_THAT(html, HasSubstr("for 3 targets: rentals, &lt;kg&gt;, output 2"));
  EXPECT_THAT(html, HasSubstr("<option value=\"1\">&lt;kg&gt;</option>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">&lt;kg&gt;</th>"));
  EXPECT_EQ(testing::chart_data(html, "Predicted against true: &lt;kg&gt;")["name"], "<kg>");
  const nlohmann::json data = testing::page_json(html);
  ASSERT_EQ(data["sample"].size(), 3u);
  EXPECT_EQ(data["sample"][1]["rows"][0]["truth"], 1200);
  EXPECT_EQ(data["sample"][1]["rows"][0]["covered"], "0");
  EXPECT_EQ(data["sample"][2]["rows"][0]["covered"], "1");
  const nlohmann::json parts = testing::chart_data(html, "By target");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1]["name"], "<kg>");
  EXPECT_EQ(parts[2]["covered"], 1);
  EXPECT_LT(parts[2]["coverage_high"], 1);
  EXPECT_EQ(testing::chart_data(html, "Length by target"), parts);
}

TEST(IntervalPage, OneTargetHasNoChoice) {
  EXPECT_THAT(report_html(sample_report()), Not(HasSubstr("id=\"target\"")));
}

TEST(IntervalPage, ShowsWhichColumnsMatter) {
  EvaluationReport report = sample_report();
  EXPECT_TRUE(testing::chart_data(report_html(report), "Which columns matter").is_null());
  report.importance.emplace();
  report.importance->columns = {{"<distance>", 4.5, std::nan("")}, {"weekday", 0.5, 0.25}};
  const nlohmann::json data = testing::chart_data(report_html(report), "Which columns matter");
  EXPECT_EQ(data["columns"][0]["column"], "<distance>");
  EXPECT_TRUE(data["columns"][0]["length"].is_null());
  EXPECT_FALSE(data.contains("widest"));
}

TEST(IntervalPage, ShowsHowGoodDistributionsAre) {
  EvaluationReport report = sample_report();
  DistributionEvaluation found{.rows = 100, .crps = 1.5};
  found.pit.fill(10);
  found.pit[9] = 40;
  found.pit_low = 4;
  found.pit_high = 17;
  found.thresholds = {{30, 0.25, 0.31}};
  report.methods[0].distribution = found;
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("<section id=\"distribution\">"));
  EXPECT_EQ(testing::chart_data(html, "Where the truth falls in its distribution")["pit"][9], 40);
  EXPECT_THAT(html, HasSubstr("<td>40</td><td>beyond chance</td>"));
  EXPECT_EQ(testing::chart_data(html, "The chance to exceed a threshold")[0]["observed"], 0.31);
}

TEST(IntervalPage, RefusesAReportOfNothing) {
  EXPECT_THROW(report_html(EvaluationReport{}), std::invalid_argument);
}

}  // namespace
}  // namespace fcp
