// What charts.js draws, in a browser: of any data, and of the data of reports. All odd charts stand
// on one page, so that Chromium, which takes seconds to start, starts once for them.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/report/charts.h"
#include "apps/report/json.h"
#include "apps/report/page.h"
#include "apps/report/results.h"
#include "label_samples.h"
#include "odd_charts.h"
#include "page_checks.h"
#include "report_samples.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;
using testing::count_of;
using ::testing::HasSubstr;
using testing::kInfinity;
using testing::kNaN;
using ::testing::Not;

// A page under construction: its charts in the order in which they were added.
struct OddPage {
  std::vector<Figure> figures;
  Json data = {{"alpha", 0.1}};

  size_t add(ChartData chart) {
    const std::string title = "<t> & " + std::to_string(figures.size());
    figures.push_back({.caption = title, .chart = std::move(chart)});
    return figures.size() - 1;
  }
  std::string html() const { return html_page("odd", "", html_figures(figures), data); }
};

Json part(const std::string& name, size_t covered, size_t rows) {
  const Coverage coverage = coverage_of(covered, rows);
  return {{"name", name},
          {"rows", rows},
          {"covered", covered},
          {"coverage", coverage.rate},
          {"coverage_low", coverage.lower},
          {"coverage_high", coverage.upper}};
}

void add_histograms(OddPage& page) {
  std::vector<size_t> full(1001, 0);
  full.back() = 50;
  for (const auto& values : testing::odd_samples()) {
    for (double mean : {0.0, kInfinity, std::numeric_limits<double>::max()}) {
      const std::vector<MethodMean> means = {{"nested", mean}, {"residual", 2}};
      page.add(length_chart(values, means));
    }
    page.add(score_chart(values, std::nullopt));
    for (double radius : {-1.0, 2.0, kInfinity, -kInfinity}) {
      page.add(score_chart(values, radius));
    }
  }
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{}, {0}, {5}, {0, 1}, {0, 0, 0}, {1, 2, 3}, full}) {
    for (double mean : {1.5, 700.0, kInfinity, kNaN}) {
      const std::vector<MethodMean> means = {{"lac", mean}, {"aps", 2}};
      page.add(size_chart(sizes, means));
    }
  }
}

void add_samples(OddPage& page) {
  const double huge = std::numeric_limits<double>::max();
  const std::vector<std::vector<IntervalExample>> samples = {
      {{1, 0, 2, 1}},
      {{1, 1, 1, 1}},
      {{0, -kInfinity, kInfinity, 0}},
      {{0, 3, 2, 5}},
      {{1, 0, 2, 1}, {2, -kInfinity, 3, 9}, {3, kInfinity, -kInfinity, 0}},
      {{-huge, -huge, huge, huge}},
      {{kNaN, 0, 1, 0}}};
  for (const auto& rows : samples) {
    EvaluationReport report = testing::sample_report(50, 1);
    report.examples.clear();
    for (const IntervalExample& row : rows) report.examples.push_back({.region = row});
    const Json sample = sample_json(report)[0];
    page.add({"sample", sample});
    page.add({"scatter", sample});
  }
}

void add_curves(OddPage& page) {
  page.add(coverage_curve_chart({}, 0));
  const CurvePoint one{Level(0.1), 1, coverage_of(9, 10)};
  const CurvePoint all{Level(0.5), kInfinity, coverage_of(10, 10)};
  const CurvePoint none{Level(0.9), 0, coverage_of(0, 10)};
  for (size_t n : {0, 1, 100}) {
    for (const std::vector<CurvePoint>& points :
         {std::vector<CurvePoint>{}, {one}, {one, one}, {none, all, one}}) {
      const std::vector<CurveSeries> series = {{"nested", points}, {"residual", {&one, 1}}};
      page.add(coverage_curve_chart(series, n));
    }
  }
  page.add(comparison_chart({"Lengths", "x", {}, {}, {}}));
  page.add(curve_chart({"Empty", "x", "y", {{"none", {}, true}}}));
}

void add_lists(OddPage& page) {
  for (const char* kind : {"parts", "worst_parts", "answers"}) page.add({kind, Json::array()});
  page.add({"parts", Json::array({part("a", 0, 1), part("b", 1, 1)})});
  page.add({"reliability", Json::array()});
  page.add({"pit", {{"pit", std::vector<int>(10)}, {"pit_low", 0}, {"pit_high", 0}}});
  page.add({"importance",
            {{"unit", "changes by"},
             {"columns",
              Json::array({Json{{"column", "<c>"}, {"prediction", 0}, {"length", nullptr}}})}}});
  page.add({"lengths", Json::array({Json{{"name", "y"}, {"length", "inf"}, {"deviation", 0}}})});
  Json periods = Json::array();
  for (int i = 0; i < 40; ++i) {
    periods.push_back(
        {{"period", "2026-01-" + std::to_string(i)}, {"a", i % 7 ? Json(i) : Json()}});
  }
  page.data["timeline"] = periods;
  Json timeline = {{"y", "a"}, {"low", 0}, {"line", 3}, {"most", 9}};
  timeline["series"] = Json::array({Json::array({"<a>", "a"}), Json::array({"b", "b"})});
  page.add({"timeline", timeline});
}

TEST(DrawnCharts, DrawAnythingAndSayWhatTheyLeaveOut) {
  const std::string program = testing::browser();
  if (program.empty()) GTEST_SKIP() << "neither chromium nor google-chrome is on the PATH";
  OddPage page;
  add_histograms(page);
  add_samples(page);
  add_curves(page);
  add_lists(page);
  const size_t infinite = page.add(score_chart(std::vector<double>{1, 2, 3}, kInfinity));
  const size_t split = page.add(score_chart(std::vector<double>{1, 2, 3}, 1.5));
  const size_t lost = page.add(length_chart(std::vector<double>{1, 2, kInfinity}, {}));
  const size_t sizes = page.add(size_chart(std::vector<size_t>{3, 20, 0, 7}, {}));
  Json many = Json::array();
  for (size_t i = 0; i < 100; ++i) many.push_back(part("part" + std::to_string(i), i, 100));
  const size_t worst = page.add({"parts", many});
  const std::string name = "größer als alles, was bisher gemessen wurde";
  const size_t below =
      page.add({"parts", Json::array({part(name, 90, 100), part("<b>poor</b>", 50, 100)})});
  const size_t compared = page.add(comparison_chart(
      {"L", "x", {"bio", "bike"}, {{"nested", {0.9, kNaN}, {0.1, 0}}, {"cqr", {1, 2}, {}}}, 1}));
  const std::vector<PlotPoint> decay = {{10, 1}, {100, 0.1}, {1000, 0}, {1000, -1}};
  const size_t logarithmic = page.add(curve_chart({"C", "n", "bias", {{"b", decay}}, true}));
  const size_t marks = page.add(curve_chart({"C", "x", "y", {{"a", {{0, 1}, {1, 2}}, false}}}));
  const Json chance = {{"threshold", 30}, {"predicted", 0.8125}, {"observed", 0.25}};
  const size_t chances = page.add({"reliability", Json::array({chance})});
  const size_t numbers = page.add(
      comparison_chart({"N",
                        "x",
                        {"a"},
                        {{"x", {1234567.8}, {}}, {"y", {-1.5e-7}, {}}, {"z", {0.00012345}, {}}},
                        {}}));

  const std::vector<std::string> charts = testing::charts_of(testing::opened(program, page.html()));
  ASSERT_EQ(charts.size(), page.figures.size());
  for (const std::string& chart : charts) {
    testing::expect_drawable(chart);
    EXPECT_THAT(chart, Not(HasSubstr("<t>")));
  }
  EXPECT_THAT(charts[infinite], HasSubstr("radius ∞: beyond every score"));
  EXPECT_EQ(count_of(charts[infinite], "bar outside"), 0u);
  EXPECT_GT(count_of(charts[split], "bar outside"), 0u);
  EXPECT_THAT(charts[lost], HasSubstr("1 infinite, not drawn"));
  EXPECT_THAT(charts[sizes], HasSubstr("data-tip=\"size 1: 20\""));
  EXPECT_EQ(count_of(charts[sizes], "class=\"bar\""), 3u);
  EXPECT_THAT(charts[worst], HasSubstr("the worst 24 of 100"));
  EXPECT_THAT(charts[worst], HasSubstr(">part23<"));
  EXPECT_THAT(charts[worst], Not(HasSubstr(">part24<")));
  EXPECT_EQ(count_of(charts[below], "<path class=\"dot miss\""), 2u);  // the part and the legend
  EXPECT_EQ(count_of(charts[below], "<circle class=\"dot series0\""), 1u);
  EXPECT_THAT(charts[below], HasSubstr(">größer als alles, w…<"));
  EXPECT_THAT(charts[below], HasSubstr("data-tip=\"" + name));
  EXPECT_THAT(charts[below], HasSubstr(">&lt;b&gt;poor&lt;/b&gt;<"));
  EXPECT_EQ(count_of(charts[compared], "bio, nested: 0.9000 ± 0.10\""), 2u);  // mark and whisker
  EXPECT_EQ(count_of(charts[compared], "bike, nested"), 0u);
  EXPECT_EQ(count_of(charts[compared], "bike, cqr: 2.000\""), 1u);
  EXPECT_EQ(count_of(charts[compared], "class=\"target\""), 1u);
  EXPECT_EQ(count_of(charts[logarithmic], "<circle"), 2u);
  EXPECT_THAT(charts[logarithmic], HasSubstr("b: 100, 0.100"));
  EXPECT_THAT(charts[logarithmic], HasSubstr(">100<"));  // a tick in the unit of the data
  EXPECT_EQ(count_of(charts[logarithmic], "<polyline"), 1u);
  EXPECT_EQ(count_of(charts[marks], "<polyline"), 0u);
  // Numbers are written as text_table.h writes them: a tie goes to the even digit.
  EXPECT_THAT(charts[chances], HasSubstr("above " + format_number(30)));
  EXPECT_THAT(charts[chances], HasSubstr("predicted " + format_percent(0.8125)));
  for (const double value : {1234567.8, -1.5e-7, 0.00012345}) {
    EXPECT_THAT(charts[numbers], HasSubstr(": " + format_number(value) + "\""));
  }
}

// Opens each page in a frame of each width, and says what does not fit.
std::string fitting_page(const Json& pages) {
  std::string text = pages.dump();
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");
  }
  return "<!DOCTYPE html><html><body><script type=\"application/json\" id=\"pages\">" + text +
         R"(</script><script>
    const found = { charts: 0, widths: [], wrong: [] };
    const measure = (frame) => {
      const page = frame.contentDocument, all = (what, from) => [...from.querySelectorAll(what)];
      const say = (what) => found.wrong.push(`${page.title} at ${frame.width}: ${what}`);
      found.widths.push(frame.contentWindow.innerWidth);
      if (page.documentElement.scrollWidth > frame.contentWindow.innerWidth) say("scrolls");
      for (const svg of all(".plot svg", page)) {
        ++found.charts;
        const box = svg.getBoundingClientRect(), kind = svg.parentNode.dataset.chart;
        if (Math.abs(box.width / svg.viewBox.baseVal.width - 1) > 0.02) say(`${kind} is scaled`);
        for (const text of all("text", svg)) {
          const own = text.getBoundingClientRect();
          if (own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 2) {
            say(`${kind} cuts off ${text.textContent}`);
          }
        }
      }
    };
    for (const html of JSON.parse(document.getElementById("pages").textContent)) {
      for (const width of [390, 1280]) {
        const frame = document.createElement("iframe");
        frame.style = "border: 0";
        frame.width = width;
        frame.height = 900;
        frame.srcdoc = html;
        frame.onload = () => measure(frame);
        document.body.append(frame);
      }
    }
    onload = () => { document.title = JSON.stringify(found); };
  </script></body></html>)";
}

// With all that a report may know.
EvaluationReport full_report() {
  EvaluationReport report = testing::sample_report();
  report.importance.emplace();
  report.importance->columns = {{"a column with a name that is far too long", 4.5, 0.001},
                                {"weekday", 0.00012, 12345.6}};
  DistributionEvaluation found{.rows = 100, .crps = 1.5};
  found.pit.fill(10);
  found.pit_low = 4;
  found.pit_high = 17;
  found.thresholds = {{30, 0.25, 0.31}};
  report.methods[0].distribution = found;
  report.over_time = {{"2026-01", coverage_of(9, 10)}};
  report.by_column = {{"a/b~c", {{"x", coverage_of(9, 10)}}}};
  return report;
}

EvaluationReport full_label_report() {
  EvaluationReport report = testing::sample_label_report();
  auto& result = std::get<SetEvaluation>(report.methods[0].evaluation);
  for (const std::string& name : report.class_names) result.answers.push_back({name, 5, 4, 3, 0.9});
  ProbabilityEvaluation found{"softmax", "answer", 100, {}, {}, {}, {}};
  found.reliability = {{0.9, 1, 100, 0.99, 0.999, 0.9, 1}};
  report.methods[0].probabilities = found;
  return report;
}

// Those of whole pages, of many and of few rows, on a phone and on a laptop: letters keep their
// size, and nothing is cut off.
TEST(DrawnCharts, FitPhoneAndLaptop) {
  const std::string program = testing::browser();
  if (program.empty()) GTEST_SKIP() << "neither chromium nor google-chrome is on the PATH";
  const Json pages = {report_html(full_report()), report_html(testing::sample_report(7, 20)),
                      report_html(testing::targets_report()), report_html(full_label_report())};
  size_t charts = 0;
  for (const Json& page : pages) charts += testing::planned_charts(page.get<std::string>()).size();
  const std::string dom = testing::opened(program, fitting_page(pages));
  const size_t title = dom.find("<title>") + 7;
  const Json found = Json::parse(dom.substr(title, dom.find("</title>") - title));
  EXPECT_EQ(found["charts"], 2 * charts);
  EXPECT_THAT(found["widths"].get<std::vector<int>>(), ::testing::Contains(390).Times(4));
  EXPECT_EQ(found["wrong"], Json::array());
}

// The reader chooses the second target, and sees its rows in its unit.
TEST(DrawnCharts, OfTheTargetThatIsChosen) {
  const std::string program = testing::browser();
  if (program.empty()) GTEST_SKIP() << "neither chromium nor google-chrome is on the PATH";
  std::string html = report_html(testing::targets_report());
  const std::string end = "</body>";
  html.insert(html.find(end), R"(<script>
    const target = document.getElementById("target");
    target.value = "1";
    target.dispatchEvent(new Event("change"));
  </script>)");
  const std::string dom = testing::opened(program, html);
  const std::string chart = testing::charts_of(dom).at(0);
  testing::expect_drawable(chart);
  EXPECT_THAT(chart, HasSubstr(">&lt;kg&gt;</text>"));
  EXPECT_THAT(chart, HasSubstr("prediction 1,000, interval 900.0 to 1,100, truth 1,200, missed"));
  EXPECT_THAT(dom, HasSubstr("<td>1,000</td><td>900.0</td><td>1,100</td><td>1,200</td>"));
}

}  // namespace
}  // namespace fcp
