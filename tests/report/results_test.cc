#include "apps/report/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/report/charts.h"
#include "page_checks.h"

namespace fcp {
namespace {

ResultPage sample_page() {
  ResultSection section;
  section.id = "one";
  section.title = "Lengths & <sets>";
  section.claim = "shorter";
  section.setup = "By `fcp`.";
  section.readings = {"`nested` is 8 % shorter."};
  section.tables = {{"Lengths", {"set", "length"}, {{"a|b", "1.2"}, {"c", "−3"}}},
                    {"Long one", {"set"}, {{"x"}}, true}};
  section.figures = {
      {.caption = "A chart",
       .chart = comparison_chart({"Lengths", "x", {"a", "b"}, {{"m", {1, 2}, {}}}, 1.0}),
       .wide = true}};
  section.notes = {"b is left out: no file"};
  ResultSection other;
  other.id = "two";
  other.title = "Nothing";
  return {"Results", "of a test", {section, other}, {{"seeds", "5"}}};
}

TEST(ResultSection, ThePageIsWhole) {
  const std::string html = results_html(sample_page());
  testing::expect_well_formed(html);
  testing::expect_self_contained(html);
  EXPECT_THAT(html, ::testing::HasSubstr("<a href=\"#one\">Lengths &amp; &lt;sets&gt;</a>"));
  EXPECT_THAT(html, ::testing::HasSubstr("<code>nested</code> is 8&nbsp;% shorter."));
  EXPECT_THAT(html, ::testing::HasSubstr("<summary>Long one</summary>"));
  EXPECT_THAT(html, ::testing::HasSubstr("b is left out: no file"));
  EXPECT_THAT(html, ::testing::HasSubstr("The paper: shorter"));
  EXPECT_EQ(testing::chart_data(html, "A chart")["series"][0]["values"], (nlohmann::json{1, 2}));
}

TEST(ResultSection, TheMarkdownHasItsTables) {
  const std::string text = results_markdown(sample_page());
  EXPECT_THAT(text, ::testing::StartsWith("# Results\n\nof a test\n\n## Lengths & <sets>\n"));
  EXPECT_THAT(text,
              ::testing::HasSubstr("Lengths\n\n| set | length |\n|---|---|\n| a\\|b | 1.2 |\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("- `nested` is 8 % shorter.\n"));
}

TEST(ResultSection, TheTerminalLeavesOutLongTables) {
  const std::string text = section_text(sample_page().sections[0]);
  EXPECT_THAT(text, ::testing::HasSubstr("a|b"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("Long one")));
}

}  // namespace
}  // namespace fcp
