#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/report/page.h"
#include "apps/report/results.h"
#include "label_samples.h"
#include "page_checks.h"
#include "report_samples.h"

namespace fcp {
namespace {

using testing::count_of;
using ::testing::HasSubstr;
using testing::kInfinity;
using ::testing::Not;
using testing::sample_label_report;

constexpr std::array kLabelSections = {"headline", "charts",  "methods",   "parts",
                                       "examples", "promise", "provenance"};

// The headline tile of this label, as text.
std::string tile(const std::string& html, const std::string& label) {
  const size_t at = html.find("<span class=\"label\">" + label + "<");
  return at == std::string::npos ? "" : html.substr(at, html.find("</div>", at) - at);
}

TEST(LabelPage, HasAllSectionsAndCharts) {
  const std::string html = report_html(sample_label_report());
  for (const char* id : kLabelSections) {
    EXPECT_THAT(html, HasSubstr(std::string("<section id=\"") + id + "\">"));
  }
  EXPECT_THAT(testing::kinds_of(html),
              ::testing::ElementsAre("histogram", "parts", "curve", "histogram", "worst_parts"));
  EXPECT_THAT(html, HasSubstr("Beta(451, 50)"));
  EXPECT_THAT(html, HasSubstr("true label lies in its set"));
  EXPECT_THAT(html, HasSubstr("label sets among 20 classes, score lac"));
  EXPECT_THAT(html, Not(HasSubstr("role=\"alert\"")));
  EXPECT_THAT(html, Not(HasSubstr("interval is the whole line")));
}

TEST(LabelPage, SaysTheHeadlineNumbers) {
  const EvaluationReport report = sample_label_report();
  const SetEvaluation& result = report.methods[0].sets();
  const std::string html = report_html(report);
  EXPECT_THAT(tile(html, "Coverage"), HasSubstr(html_text(format_percent(result.coverage.rate))));
  EXPECT_THAT(tile(html, "Coverage"), HasSubstr("target 90&nbsp;%"));
  EXPECT_THAT(tile(html, "Mean size"), HasSubstr(format_number(result.mean_size)));
  EXPECT_THAT(tile(html, "Mean size"), HasSubstr("of 20 labels"));
  EXPECT_THAT(tile(html, "Top-1 accuracy"), HasSubstr("81.2&nbsp;%"));
  EXPECT_THAT(tile(html, "Top-1 accuracy"), HasSubstr("top-5 93.8&nbsp;%"));
  EXPECT_THAT(tile(html, "Test rows"), HasSubstr("1,000"));
  EXPECT_THAT(tile(html, "Test rows"), HasSubstr("calibrated on 500"));
  EXPECT_THAT(html, HasSubstr(html_text(format_percent(result.worst_class.coverage.rate))));
}

TEST(LabelPage, LowCoverageIsSaid) {
  EvaluationReport report = sample_label_report();
  std::get<SetEvaluation>(report.methods[0].evaluation).coverage = coverage_of(700, 1000);
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("class=\"tile bad\""));
  EXPECT_THAT(html, HasSubstr("probably not drawn"));
}

TEST(LabelPage, IsWellFormedAndNeedsNoNetwork) {
  const std::string html = report_html(sample_label_report());
  testing::expect_well_formed(html);
  testing::expect_self_contained(html);
  EXPECT_EQ(count_of(html, "<img "), 2u);
}

TEST(LabelPage, EscapesEverythingGiven) {
  EvaluationReport report = sample_label_report();
  report.methods[0].name = "<u>lac</u>";
  report.notes = {"<em>note</em>"};
  report.provenance = {{"<key>", "<value>"}};
  report.examples.push_back({"\" onload=\"x", testing::one_pixel_png(), true,
                             LabelExample{"<q>", "<s>", {"<q>", "\"><script>"}}});
  const std::string html = report_html(report);
  testing::expect_well_formed(html);
  for (const char* raw : {"<script>alert", "><script>", "<b>", "<u>", "<em>", "<key>", "<value>",
                          "<q>", "<s>", "<img>", "\" onload"}) {
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  }
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;cat&lt;/b&gt;"));
}

TEST(LabelPage, AnInfiniteRadiusIsSaidLoudly) {
  const std::string html = report_html(sample_label_report(7, 20));
  EXPECT_THAT(html, HasSubstr("role=\"alert\""));
  EXPECT_THAT(html, HasSubstr("Every set holds every label"));
  EXPECT_THAT(html, HasSubstr("at least 9 calibration rows"));
  EXPECT_THAT(html, HasSubstr("The sets say nothing: the radius is infinite."));
  EXPECT_THAT(html, HasSubstr("∞"));
  EXPECT_THAT(tile(html, "Mean size"), HasSubstr("100.0&nbsp;% of all"));
}

TEST(LabelPage, OneMethodOneRowAndNothingElse) {
  EvaluationReport report = sample_label_report(50, 1);
  report.methods.resize(1);
  report.methods[0].curve.clear();
  report.methods[0].scores.clear();
  report.methods[0].top1 = report.methods[0].top5 = std::nullopt;
  report.examples.clear();
  report.provenance.clear();
  const std::string html = report_html(report);
  testing::expect_well_formed(html);
  for (const char* id : {"examples", "provenance"}) {
    EXPECT_THAT(html, Not(HasSubstr(std::string("id=\"") + id)));
  }
  EXPECT_EQ(tile(html, "Top-1 accuracy"), "");
  EXPECT_THAT(html, Not(HasSubstr(">aps<")));
  EXPECT_EQ(testing::kinds_of(html).size(), 3u);
}

TEST(LabelPage, ShowsTheDetectionCoverage) {
  EvaluationReport report = sample_label_report();
  report.methods[0].guaranteed = false;
  report.methods[0].detection = coverage_of(777, 1000);
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("77.7&nbsp;%"));
  EXPECT_THAT(html, HasSubstr("The sets of lac carry no guarantee"));
  EXPECT_FALSE(testing::page_json(html)["curve"][0].contains("expected_low"));
}

TEST(LabelPage, WorstClassesComeFirst) {
  EvaluationReport report = sample_label_report();
  auto& result = std::get<SetEvaluation>(report.methods[0].evaluation);
  result.class_coverage.clear();
  for (size_t c = 0; c < 20; ++c) {
    result.class_coverage.push_back({"kind" + std::to_string(c), coverage_of(99 - c, 100)});
  }
  result.class_coverage[0].coverage = coverage_of(800, 1000);  // as kind19, but surer
  const std::string html = report_html(report);
  const auto row = [&](const char* name) {
    return html.find("<th scope=\"row\">" + std::string(name) + "</th>");
  };
  EXPECT_LT(row("kind0"), row("kind19"));
  EXPECT_LT(row("kind19"), row("kind18"));
  EXPECT_EQ(testing::chart_data(html, "The worst classes").size(), 20u);
}

TEST(LabelPage, ShowsHowTheSingleAnswersDo) {
  EvaluationReport report = sample_label_report();
  auto& result = std::get<SetEvaluation>(report.methods[0].evaluation);
  result.answers = {{"<cat>", 50, 40, 30, 0.875}, {"dog", 50, 0, 0}};
  result.auc = 0.875;
  result.log_loss = 0.45;
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("<td>75.0&nbsp;%</td><td>60.0&nbsp;%</td><td>0.875</td>"));
  EXPECT_THAT(html, HasSubstr("AUC (0.875 in the mean)"));
  EXPECT_THAT(html, HasSubstr("log loss of the probabilities is 0.4500"));
  const nlohmann::json data = testing::chart_data(html, "Precision and recall of the classes");
  EXPECT_EQ(data[0]["auc"], 0.875);
  EXPECT_TRUE(data[1]["precision"].is_null());
  EXPECT_FALSE(data[1].contains("auc"));
}

TEST(LabelPage, ShowsWhetherProbabilitiesAreTrue) {
  EvaluationReport report = sample_label_report();
  EXPECT_THAT(report_html(report), Not(HasSubstr("id=\"probabilities\"")));
  report.methods[0].probabilities = ProbabilityEvaluation{
      .method = "venn-abers",
      .of = "<yes>",
      .rows = 150,
      .figures = {0.31, 0.12, 0.014},
      .reliability = {{0, 0.1, 120, 0.043, 0.05, 0.01, 0.08}, {0.9, 1, 30, 0.95, 0.9, 0.85, 1}},
      .mean_gap = 0.02,
      .softmax = ProbabilityFigures{0.41, 0.2, 0.1}};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("Calibration error (ECE)</span><span class=\"value\">1.40&nbsp;%"));
  EXPECT_THAT(html, HasSubstr("Log loss of the network</span><span class=\"value\">0.4100"));
  EXPECT_THAT(html, HasSubstr("Of the rows to which &lt;yes&gt; is given"));
  const nlohmann::json data = testing::chart_data(html, "Are the probabilities true?");
  EXPECT_EQ(data["reliability"][1]["rows"], 30);
  EXPECT_EQ(data["softmax"]["ece"], 0.1);
  EXPECT_EQ(data["mean_gap"], 0.02);
}

TEST(LabelPage, NamesTheClassesWithoutATestRow) {
  EvaluationReport report = sample_label_report();
  EXPECT_THAT(report_html(report), Not(HasSubstr("No test row")));
  auto& classes = std::get<SetEvaluation>(report.methods[0].evaluation).class_coverage;
  classes.erase(classes.begin() + 3);
  EXPECT_THAT(report_html(report),
              HasSubstr("No test row belongs to 1 of the 20 classes: class 3."));
  classes.resize(9);
  EXPECT_THAT(report_html(report),
              HasSubstr("11 of the 20 classes: class 3, class 10, class 11, class 12, class 13, "
                        "class 14, class 15, class 16 and 3 more."));
  report.class_names.clear();
  EXPECT_THAT(report_html(report), HasSubstr("No test row belongs to 11 of the 20 classes."));
}

TEST(LabelPage, ExamplesSayInWordsWhatTheyAre) {
  const std::string html = report_html(sample_label_report());
  EXPECT_EQ(count_of(html, "<p class=\"mark\">✓ covered"), 1u);
  EXPECT_EQ(count_of(html, "<p class=\"mark\">✗ missed"), 2u);
  EXPECT_EQ(count_of(html, "<p class=\"remark none\">∅ The set is empty"), 1u);
  EXPECT_THAT(html, HasSubstr("true label dog &amp; fox, predicted class 3"));
  EXPECT_THAT(html, HasSubstr("<li class=\"truth\" data-last=\"0\">&lt;b&gt;cat&lt;/b&gt;</li>"));
}

// Missed rows come first, and among them those of large sets.
TEST(LabelPage, HardExamplesComeFirst) {
  EvaluationReport report = sample_label_report();
  report.examples = {{"easy", "", true, LabelExample{"a", "a", {"a"}}},
                     {"large", "", true, LabelExample{"a", "a", {"a", "b", "c"}}},
                     {"empty", "", false, LabelExample{"a", "a", {}}},
                     {"wrong", "", false, LabelExample{"a", "b", {"b"}}}};
  const std::string html = report_html(report);
  std::vector<size_t> places;
  for (const char* name : {"wrong", "empty", "large", "easy"}) {
    places.push_back(html.find(std::string("<h3>") + name + "</h3>"));
  }
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_NE(places.back(), std::string::npos);
}

// At other levels other labels are in: those of larger sets stand ready, hidden.
TEST(LabelPage, ExamplesKnowTheSetsOfOtherLevels) {
  EvaluationReport report = sample_label_report();
  MethodResult& main = report.methods[0];
  main.levels = {{Level::parse("0.05"), coverage_of(96, 100), 3},
                 {Level::parse("0.1"), main.coverage(), main.sets().mean_size},
                 {Level::parse("0.2"), coverage_of(81, 100), 1}};
  report.examples = {
      {"row", "", false, LabelExample{"c", "a", {"a", "b"}, {{"a", 2}, {"b", 1}, {"c", 0}}}}};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("data-covered=\"100\""));
  EXPECT_THAT(html, HasSubstr("<li data-last=\"2\">a</li><li data-last=\"1\">b</li>"
                              "<li class=\"truth\" data-last=\"0\" hidden=\"\">c</li>"));
  EXPECT_THAT(html, HasSubstr("id=\"alpha\""));
}

TEST(LabelPage, ListsConfusions) {
  EvaluationReport report = sample_label_report();
  auto& result = std::get<SetEvaluation>(report.methods[0].evaluation);
  EXPECT_THAT(report_html(report), Not(HasSubstr("id=\"confusions\"")));
  result.confusions = {{"<cat>", "dog", 40, 30}};
  result.confused_rows = 50;
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">&lt;cat&gt;</th><td>dog</td><td>40</td><td>30 "
                              "(75&nbsp;%)</td>"));
  EXPECT_THAT(html, HasSubstr("50 test rows wrongly; the most frequent confusions make up 40"));
}

TEST(LabelPage, ClassConditionalMethodsAreNotComparedWithOthers) {
  EvaluationReport report = sample_label_report();
  report.methods[0].radius = std::nullopt;
  report.guaranteed_classes = true;
  report.guaranteed_groups = {{"dog & fox", 300, coverage_of(270, 300)}};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("lac promises coverage for each class, the others only over all"));
  EXPECT_THAT(html, HasSubstr("The guarantee holds for each class alone."));
  const size_t row = html.find("<th scope=\"row\">aps</th>");
  EXPECT_THAT(html.substr(row, html.find("</tr>", row) - row), HasSubstr("<td>–</td>"));
}

TEST(LabelPage, ShowsAtMost24ExamplesAndTwelveLabels) {
  EvaluationReport report = sample_label_report();
  LabelExample large{"label 90", "label 0", {}};
  for (int i = 0; i < 100; ++i) large.members.push_back("label " + std::to_string(i));
  report.examples.assign(30, {"row", "", true, large});
  const std::string html = report_html(report);
  EXPECT_EQ(count_of(html, "class=\"card example"), 24u);
  EXPECT_THAT(html, HasSubstr("The hardest 24 of 30 test rows that were drawn at random"));
  EXPECT_EQ(count_of(html, "<li class=\"truth\" data-last=\"0\">label 90</li>"), 24u);
  EXPECT_EQ(count_of(html, "<li data-last=\"0\">label 10</li>"), 24u);
  EXPECT_EQ(count_of(html, "<li data-last=\"0\">label 11</li>"), 0u);
  EXPECT_EQ(count_of(html, "and 88 more"), 24u);
}

TEST(LabelPage, RefusesAReportOfNothing) {
  EXPECT_THROW(report_html(EvaluationReport{}), std::invalid_argument);
}

}  // namespace
}  // namespace fcp
