// What a page must be: well-formed, self-contained, and without errors in a browser.
#pragma once

#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "svg_numbers.h"

namespace fcp::testing {

// The charts that a drawn page has, each one <svg> element.
inline std::vector<std::string> charts_of(const std::string& dom) {
  std::vector<std::string> charts;
  for (size_t at = 0; (at = dom.find("<svg ", at)) != std::string::npos; ++at) {
    charts.push_back(dom.substr(at, dom.find("</svg>", at) + 6 - at));
  }
  return charts;
}

// What a place for a chart is to show: its kind, its title, and the data, found in the JSON of the
// page or in the place itself.
struct PlannedChart {
  std::string kind, title;
  nlohmann::json data;
};

inline nlohmann::json script_json(const std::string& html, size_t from) {
  const size_t begin = html.find('>', html.find("<script type=\"application/json\"", from)) + 1;
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

// The report's JSON, as the page carries it.
inline nlohmann::json page_json(const std::string& html) {
  const size_t at = html.find("<script type=\"application/json\" id=\"report-data\">");
  return at == std::string::npos ? nlohmann::json() : script_json(html, at);
}

inline std::vector<PlannedChart> planned_charts(const std::string& html) {
  std::vector<PlannedChart> planned;
  const nlohmann::json page = page_json(html);
  const std::string begin = "<div class=\"plot\" data-chart=\"";
  for (size_t at = 0; (at = html.find(begin, at)) != std::string::npos; at += begin.size()) {
    const std::string tag = html.substr(at, html.find('>', at) - at);
    const auto value = [&](const std::string& name) {
      return attribute_values(tag, name).empty() ? "" : attribute_values(tag, name)[0];
    };
    const bool points = tag.find(" data-at=") != std::string::npos;
    planned.push_back(
        {value("data-chart"), value("data-title"),
         points ? page.at(nlohmann::json::json_pointer(value("data-at"))) : script_json(html, at)});
  }
  return planned;
}

inline std::vector<std::string> kinds_of(const std::string& html) {
  std::vector<std::string> kinds;
  for (const PlannedChart& chart : planned_charts(html)) kinds.push_back(chart.kind);
  return kinds;
}

// The data of the chart with this title; null where there is none.
inline nlohmann::json chart_data(const std::string& html, const std::string& title) {
  for (const PlannedChart& chart : planned_charts(html)) {
    if (chart.title == title) return chart.data;
  }
  return {};
}

// Where the tag that begins at `from` ends: a > outside quotes.
inline size_t tag_end(const std::string& html, size_t from) {
  bool quoted = false;
  for (size_t at = from; at < html.size(); ++at) {
    if (html[at] == '"') quoted = !quoted;
    if (html[at] == '<' && at > from && !quoted) break;
    if (html[at] == '>' && !quoted) return at;
  }
  return std::string::npos;
}

// Every tag ends, and every element is closed in its turn.
inline void expect_well_formed(const std::string& html) {
  const std::set<std::string> void_elements = {"!DOCTYPE", "meta", "link", "img", "input"};
  std::vector<std::string> open;
  for (size_t at = 0; (at = html.find('<', at)) != std::string::npos;) {
    const size_t end = tag_end(html, at);
    ASSERT_NE(end, std::string::npos) << "a tag without an end: " << html.substr(at, 80);
    const bool closes = html[at + 1] == '/';
    size_t name_end = at + 1 + closes;
    while (std::isalnum(static_cast<unsigned char>(html[name_end])) || html[name_end] == '!') {
      ++name_end;
    }
    const std::string name = html.substr(at + 1 + closes, name_end - at - 1 - closes);
    ASSERT_FALSE(name.empty()) << html.substr(at, 80);
    if (closes) {
      ASSERT_FALSE(open.empty()) << "</" << name << ">";
      ASSERT_EQ(open.back(), name) << html.substr(at > 200 ? at - 200 : 0, 220);
      open.pop_back();
    } else if (html[end - 1] != '/' && !void_elements.contains(name)) {
      open.push_back(name);
    }
    at = name == "script" && !closes ? html.find("</script>", end) : end;  // a script has no tags
    ASSERT_NE(at, std::string::npos) << "a script without an end";
  }
  EXPECT_THAT(open, ::testing::IsEmpty());
}

// Nothing is fetched: the only addresses are names of namespaces, the only sources are data.
inline void expect_self_contained(const std::string& html) {
  EXPECT_EQ(count_of(html, "http"), count_of(html, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(count_of(html, " src="), count_of(html, " src=\"data:image/png;base64,"));
  for (const char* part : {"@import", "url("}) {
    EXPECT_THAT(html, ::testing::Not(::testing::HasSubstr(part)));
  }
}

inline std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return output;
  std::array<char, 4096> part;
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), n);
  pclose(pipe);
  return output;
}

// Empty where there is none.
inline std::string browser() {
  for (const char* name : {"chromium", "google-chrome"}) {
    if (!output_of(std::string("command -v ") + name).empty()) return name;
  }
  return "";
}

// The page as a browser shows it, after its script: as markup. No error may be said on the way.
inline std::string opened(const std::string& program, const std::string& html) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("fcp_report_test_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path file = folder / "page.html";
  const fs::path log = folder / "log";
  std::ofstream(file) << html;
  const std::string dom = output_of(
      "timeout 240 " + program +
      " --headless --no-sandbox --disable-gpu --enable-logging=stderr --v=0 --dump-dom"
      " --virtual-time-budget=20000 --user-data-dir='" +
      (folder / "profile").string() + "' 'file://" + file.string() + "' 2>'" + log.string() + "'");
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("CONSOLE")));
  }
  fs::remove_all(folder);
  return dom;
}

}  // namespace fcp::testing
