#include "fcp/report/html.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fcp/report/page.h"

#include "report_samples.h"
#include "svg_numbers.h"

namespace fcp {
namespace {

using testing::count_of;
using ::testing::HasSubstr;
using testing::kInfinity;
using ::testing::Not;
using testing::sample_report;

constexpr std::array kSections = {"headline", "charts",  "methods",
                                  "parts",    "promise", "provenance"};

std::vector<std::string> charts_of(const std::string& html) {
  std::vector<std::string> charts;
  for (size_t at = 0; (at = html.find("<svg ", at)) != std::string::npos; ++at) {
    charts.push_back(html.substr(at, html.find("</svg>", at) + 6 - at));
  }
  return charts;
}

TEST(HtmlPage, TextIsEscaped) {
  EXPECT_EQ(html_text("a < 5 %"), "a &lt; 5&nbsp;%");
  const std::vector<std::string> headers = {"<h>"};
  const std::vector<std::vector<std::string>> rows = {{"<r>", "<c>"}};
  const std::string table = html_table(headers, rows);
  for (const char* raw : {"<h>", "<r>", "<c>"}) EXPECT_THAT(table, Not(HasSubstr(raw)));
}

TEST(HtmlPage, AFigureLeftOverStandsAlone) {
  const Figure figure{.caption = "c", .chart = "<svg></svg>"};
  const Figure wide{.caption = "w", .chart = "<svg></svg>", .wide = true};
  EXPECT_EQ(count_of(html_figures(std::vector{wide, figure, figure}), "alone"), 0u);
  EXPECT_EQ(count_of(html_figures(std::vector{wide, figure, figure, figure}), "alone"), 1u);
}

TEST(IntervalReportHtml, HasAllSectionsAndCharts) {
  const std::string html = interval_report_html(sample_report());
  for (const char* id : kSections) {
    EXPECT_THAT(html, HasSubstr(std::string("<section id=\"") + id + "\">"));
  }
  const std::vector<std::string> charts = charts_of(html);
  EXPECT_EQ(charts.size(), 7u);
  for (const std::string& chart : charts) testing::expect_drawable(chart);
  EXPECT_THAT(html, HasSubstr("Beta(451, 50)"));
  EXPECT_THAT(html, Not(HasSubstr("class=\"alarm\"")));
}

TEST(IntervalReportHtml, EscapesEverythingGiven) {
  IntervalReport report = sample_report();
  report.response = "<i>y</i>";
  report.methods[0].name = "<u>nested</u>";
  report.notes = {"<em>note</em>"};
  report.provenance = {{"<key>", "<value>"}};
  const std::string html = interval_report_html(report);
  for (const char* raw : {"<script", "<i>", "<u>", "<em>", "<key>", "<value>", "<b>"}) {
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  }
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)"));
}

TEST(IntervalReportHtml, NeedsNoNetwork) {
  const std::string html = interval_report_html(sample_report());
  const size_t namespaces = count_of(html, "xmlns=\"http://www.w3.org/2000/svg\"");
  EXPECT_EQ(count_of(html, "http"), namespaces);
  for (const char* part : {" src=", "@import", "url("}) EXPECT_THAT(html, Not(HasSubstr(part)));
}

TEST(IntervalReportHtml, AnInfiniteRadiusIsSaidLoudly) {
  const std::string html = interval_report_html(sample_report(7, 20));
  EXPECT_THAT(html, HasSubstr("role=\"alert\""));
  EXPECT_THAT(html, HasSubstr("at least 9 calibration rows"));
  EXPECT_THAT(html, HasSubstr("∞"));
  for (const std::string& chart : charts_of(html)) testing::expect_drawable(chart);
}

TEST(IntervalReportHtml, OneRowAndNothingElse) {
  IntervalReport report = sample_report(50, 1);
  report.methods.resize(1);
  report.methods[0].curve.clear();
  report.methods[0].scores.clear();
  report.methods[0].lengths.clear();
  report.sample.clear();
  report.provenance.clear();
  const std::string html = interval_report_html(report);
  EXPECT_THAT(html, Not(HasSubstr("id=\"charts\"")));
  EXPECT_THAT(html, Not(HasSubstr("id=\"provenance\"")));
  for (const std::string& chart : charts_of(html)) testing::expect_drawable(chart);
}

TEST(IntervalReportHtml, ShowsBothCoveragesOfTheSurrogate) {
  IntervalReport report = sample_report();
  report.methods[0].guaranteed = false;
  report.methods[0].detection = coverage_of(777, 1000);
  const std::string html = interval_report_html(report);
  EXPECT_THAT(html, HasSubstr("77.7&nbsp;%"));
  EXPECT_THAT(html, HasSubstr("carry no guarantee"));
  EXPECT_EQ(html.find("class=\"expected\""), std::string::npos);
}

TEST(IntervalReportHtml, SeveralOutputs) {
  const std::vector<double> lower(6, -1.0), upper(6, 1.0), truth = {0, 0, 2, 0, 0, 0};
  IntervalRows rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  IntervalReport report = sample_report();
  report.methods[0].evaluation = evaluate_intervals(rows, 2);
  const std::string html = interval_report_html(report);
  EXPECT_THAT(html, HasSubstr("output 1"));
  EXPECT_THAT(html, HasSubstr("3 test rows, 2 outputs"));
}

TEST(IntervalReportHtml, RefusesAReportOfNothing) {
  EXPECT_THROW(interval_report_html(IntervalReport{}), std::invalid_argument);
}

// ---- in a browser -----------------------------------------------------------------------------

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return output;
  std::array<char, 4096> part;
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), n);
  pclose(pipe);
  return output;
}

std::string browser() {
  for (const char* name : {"chromium", "google-chrome"}) {
    if (!output_of(std::string("command -v ") + name).empty()) return name;
  }
  return "";
}

TEST(IntervalReportHtml, OpensInABrowserWithoutErrors) {
  const std::string program = browser();
  if (program.empty()) GTEST_SKIP() << "neither chromium nor google-chrome is on the PATH";
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("fcp_report_test_" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (const auto& [name, report] :
       {std::pair("usual", sample_report()), std::pair("infinite", sample_report(7, 20))}) {
    const fs::path file = folder / (std::string(name) + ".html");
    std::ofstream(file) << interval_report_html(report);
    const fs::path log = folder / (std::string(name) + ".log");
    const std::string dom =
        output_of("timeout 60 " + program +
                  " --headless --no-sandbox --disable-gpu --enable-logging=stderr --v=0 --dump-dom"
                  " --user-data-dir='" +
                  (folder / "profile").string() + "' 'file://" + file.string() + "' 2>'" +
                  log.string() + "'");
    for (const char* id : kSections) {
      EXPECT_THAT(dom, HasSubstr(std::string("<section id=\"") + id + "\">")) << name;
    }
    EXPECT_EQ(count_of(dom, "<svg "), charts_of(interval_report_html(report)).size()) << name;
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, Not(HasSubstr("CONSOLE"))) << name;
    }
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace fcp
