#include "apps/report/level_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/report/html.h"
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
  IntervalExample row{12345.6, 1, 2, 1.5};
  row.at_levels = {{{0, 3}, true}, {{1, 2}, true}, {{-testing::kInfinity, 1}, false}};
  report.examples.push_back({.name = "</script><b>", .covered = true, .region = row});
  return report;
}

nlohmann::json data_of(const std::string& html) {
  const std::string begin = "id=\"report-data\">";
  const size_t at = html.find(begin);
  EXPECT_NE(at, std::string::npos);
  const size_t from = at + begin.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
}

TEST(LevelSection, HoldsTheTextsOfEveryLevel) {
  const EvaluationReport report = levels_report();
  const std::string html = report_html(report);
  testing::expect_well_formed(html);
  testing::expect_self_contained(html);
  const nlohmann::json data = data_of(html);
  EXPECT_EQ(data["own"], 1);
  ASSERT_EQ(data["levels"].size(), 3u);
  EXPECT_EQ(data["levels"][0][0], "0.05");
  EXPECT_EQ(data["levels"][0][1], "95.5 %");
  EXPECT_EQ(data["levels"][0][3], "3.500");
  EXPECT_EQ(data["levels"][0][4], "45 of 1,000 rows missed");
  EXPECT_EQ(data["levels"][2][3], "∞");
  EXPECT_EQ(data["levels"][2][5], "0.5");
  EXPECT_THAT(html, HasSubstr("id=\"alpha\" min=\"0\" max=\"2\" step=\"1\" value=\"1\""));
  EXPECT_THAT(html, HasSubstr("<tr data-level=\"1\" class=\"current\"><th scope=\"row\">0.1</th>"));
}

TEST(LevelSection, HoldsTheRowsAtEveryLevel) {
  const nlohmann::json data = data_of(report_html(levels_report()));
  ASSERT_EQ(data["rows"].size(), 1u);
  EXPECT_EQ(data["rows"][0][0], "</script><b>");
  EXPECT_EQ(data["rows"][0][1], "110");
  EXPECT_EQ(data["rows"][0][2], "12,346 1.500 0 3.000 1.000 2.000 −∞ 1.000");
}

TEST(LevelSection, OneLevelHasNoSlider) {
  EvaluationReport report = levels_report();
  report.methods[0].levels.clear();
  for (Example& example : report.examples) {
    std::get<IntervalExample>(example.region).at_levels.clear();
  }
  const std::string html = report_html(report);
  EXPECT_THAT(html, Not(HasSubstr("id=\"alpha\"")));
  EXPECT_EQ(data_of(html)["levels"].size(), 1u);
  EXPECT_EQ(data_of(html)["rows"][0][1], "1");
  EXPECT_EQ(count_of(html, "name=\"show\""), 3u);
}

TEST(LevelSection, NothingToShowIsNoSection) {
  EvaluationReport report = levels_report();
  report.methods[0].levels.clear();
  report.examples.clear();
  EXPECT_EQ(level_section(report, claim_of(report), ""), "");
}

TEST(LevelSection, SmallLevelsMayLeaveTheChart) {
  MethodResult method;
  for (const char* alpha : {"0.01", "0.02", "0.05", "0.1"}) {
    method.levels.push_back({Level::parse(alpha), coverage_of(1, 2)});
  }
  EXPECT_EQ(first_drawn_level(method), 2u);
  EXPECT_EQ(first_drawn_level(MethodResult{}), 0u);
}

}  // namespace
}  // namespace fcp
