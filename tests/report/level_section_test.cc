#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/report/page.h"
#include "apps/report/sections.h"
#include "page_checks.h"
#include "report_samples.h"

namespace fcp {
namespace {

using testing::count_of;
using ::testing::HasSubstr;
using ::testing::Not;

// Three levels, of which the middle one is the report's own.
EvaluationReport levels_report() {
  EvaluationReport report = testing::sample_report();
  MethodResult& main = report.methods[0];
  main.levels = {{Level::parse("0.05"), coverage_of(955, 1000), 3.5},
                 {Level::parse("0.1"), main.coverage(), main.intervals().length.mean},
                 {Level::parse("0.5"), coverage_of(501, 1000), testing::kInfinity, 0.25}};
  report.examples.clear();
  IntervalExample row{12345.67, 1, 2, 1.5};
  row.at_levels = {{{0, 3}, true}, {{1, 2}, true}, {{-testing::kInfinity, 1}, false}};
  report.examples.push_back({.name = "</script><b>", .covered = true, .region = row});
  return report;
}

TEST(LevelSection, HoldsTheTextsOfEveryLevel) {
  const EvaluationReport report = levels_report();
  const std::string html = report_html(report);
  testing::expect_well_formed(html);
  testing::expect_self_contained(html);
  EXPECT_THAT(html, HasSubstr("<tr data-level=\"0\"><th scope=\"row\">0.05</th><td>95&nbsp;%</td>"
                              "<td>95.5&nbsp;%</td>"));
  EXPECT_THAT(html, HasSubstr("<td>3.500</td><td>45 of 1,000 rows missed</td></tr>"));
  EXPECT_THAT(html, HasSubstr("<td>∞</td><td>499 of 1,000 rows missed</td></tr>"));
  const nlohmann::json levels = testing::page_json(html)["levels"];
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(levels[2]["alpha"], 0.5);
  EXPECT_EQ(levels[2]["length"], "inf");
  EXPECT_THAT(html, HasSubstr("id=\"alpha\" min=\"0\" max=\"2\" step=\"1\" value=\"1\""));
  EXPECT_THAT(html, HasSubstr("<tr data-level=\"1\" class=\"current\"><th scope=\"row\">0.1</th>"));
}

TEST(LevelSection, HoldsTheRowsAtEveryLevel) {
  const nlohmann::json sample = testing::page_json(report_html(levels_report()))["sample"][0];
  EXPECT_EQ(sample["name"], "rentals");
  ASSERT_EQ(sample["rows"].size(), 1u);
  const nlohmann::json row = sample["rows"][0];
  EXPECT_EQ(row["row"], "</script><b>");
  EXPECT_EQ(row["covered"], "110");
  EXPECT_EQ(row["prediction"], 12345.7);  // six digits
  EXPECT_EQ(row["lower"], (nlohmann::json{0, 1, "-inf"}));
  EXPECT_EQ(row["upper"], (nlohmann::json{3, 2, 1}));
}

TEST(LevelSection, OneLevelHasNoSlider) {
  EvaluationReport report = levels_report();
  report.methods[0].levels.clear();
  for (Example& example : report.examples) {
    std::get<IntervalExample>(example.region).at_levels.clear();
  }
  const std::string html = report_html(report);
  EXPECT_THAT(html, Not(HasSubstr("id=\"alpha\"")));
  EXPECT_FALSE(testing::page_json(html).contains("levels"));
  EXPECT_EQ(testing::page_json(html)["sample"][0]["rows"][0]["covered"], "1");
  EXPECT_EQ(count_of(html, "name=\"show\""), 3u);
}

TEST(LevelSection, NothingToShowIsNoSection) {
  EvaluationReport report = levels_report();
  report.methods[0].levels.clear();
  report.examples.clear();
  EXPECT_EQ(level_section(report, claim_of(report), ""), "");
}

}  // namespace
}  // namespace fcp
