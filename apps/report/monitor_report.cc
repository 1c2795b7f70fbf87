#include "apps/report/monitor_report.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"

#include "apps/report/json.h"
#include "apps/report/page.h"
#include "apps/report/results.h"
#include "apps/report/sections.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

// ---- text -------------------------------------------------------------------------------------

std::string with_time(size_t row, const std::string& time) {
  return time.empty() ? concat("row ", row) : concat("row ", row, " (", time, ")");
}

std::string size_cell(const SizeCount& size) {
  if (size.infinite == 0) return format_number(size.mean());
  return concat(format_number(size.mean()), ", ", size.infinite, " × ∞");
}

Table timeline_table(const MonitorReport& report) {
  const bool adapted = report.adapted_covered.rows > 0;
  std::vector<std::string> headers = {"period", "rows", "coverage", "size"};
  if (adapted) headers.insert(headers.end(), {"adapted", "adapted size", "level"});
  Table table(headers);
  for (const TimelinePoint& point : report.timeline) {
    std::vector<std::string> cells = {point.label, format_count(point.covered.rows),
                                      format_percent(point.covered.rate()), size_cell(point.size)};
    if (adapted) {
      cells.push_back(format_percent(point.adapted_covered.rate()));
      cells.push_back(size_cell(point.adapted_size));
      cells.push_back(format_number(point.level_sum / static_cast<double>(point.covered.rows), 3));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// ---- JSON -------------------------------------------------------------------------------------

void put_rate(Json& json, const RateCount& count, const Interval& sequence) {
  json["rows"] = count.rows;
  json["covered"] = count.hits;
  json["coverage"] = count.rate();
  json["coverage_low"] = sequence.lower;
  json["coverage_high"] = sequence.upper;
}

Json log10_json(bool watched, double log_capital) {
  return watched ? json_number(log_capital / std::log(10)) : Json();
}

Json alarm_json(const MonitorAlarm& alarm) {
  return {{"kind", alarm.kind},
          {"what", alarm.what},
          {"row", alarm.row},
          {"since", alarm.since},
          {"time", alarm.time.empty() ? Json() : Json(alarm.time)},
          {"began", alarm.began.empty() ? Json() : Json(alarm.began)},
          {"log10_odds", json_number(alarm.log10_odds)}};
}

Json point_json(const TimelinePoint& point, const MonitorReport& report) {
  Json json = {{"period", point.label}, {"first_row", point.first_row}};
  json["rows"] = point.covered.rows;
  json["coverage"] = point.covered.rate();
  json["size"] = json_number(point.size.mean());
  json["infinite"] = point.size.infinite;
  json["coverage_low"] = point.sequence.lower;
  json["coverage_high"] = point.sequence.upper;
  json["log10_exchangeability"] =
      log10_json(report.watches_exchangeability, point.log_exchangeability);
  json["log10_coverage"] = log10_json(report.watches_coverage, point.log_coverage);
  json["log10_drift"] = log10_json(report.watches_drift, point.log_drift);
  if (point.adapted_covered.rows == 0) return json;
  json["adapted_coverage"] = point.adapted_covered.rate();
  json["adapted_size"] = json_number(point.adapted_size.mean());
  json["adapted_infinite"] = point.adapted_size.infinite;
  json["level"] = point.level_sum / static_cast<double>(point.adapted_covered.rows);
  return json;
}

// ---- page -------------------------------------------------------------------------------------

std::string monitor_headline(const MonitorReport& report) {
  std::string tiles =
      html_tile("coverage", format_percent(report.covered.rate()),
                concat("promised ", format_target(report.options.level), "; at all times within ",
                       format_percent_range(report.sequence.lower, report.sequence.upper)));
  if (report.adapted_covered.rows > 0) {
    tiles += html_tile("adapted coverage", format_percent(report.adapted_covered.rate()),
                       concat("mean size ", format_number(report.adapted_size.mean())));
  }
  tiles += html_tile("rows", format_count(report.rows), concat(report.timeline.size(), " periods"));
  tiles += html_tile(
      "alarms", format_count(report.alarms.size()),
      concat("false ones over all time: at most ", format_percent(report.options.false_alarms)),
      report.alarms.empty() ? "" : "bad");
  return concat("<div class=\"tiles\">\n", tiles, "</div>\n");
}

std::string alarms_html(const MonitorReport& report) {
  if (report.alarms.empty()) return html_paragraph("Nothing was raised.");
  std::vector<std::vector<std::string>> rows;
  for (const MonitorAlarm& alarm : report.alarms) {
    rows.push_back({alarm.kind, alarm_place(alarm), alarm.what});
  }
  const std::vector<std::string> headers = {"alarm", "when", "what"};
  return html_table(headers, rows);
}

std::string groups_html(const MonitorReport& report) {
  if (report.groups.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const GroupCount& group : report.groups) {
    rows.push_back({group.name, format_count(group.covered.rows),
                    format_percent(group.covered.rate()),
                    format_percent_range(group.sequence.lower, group.sequence.upper)});
  }
  const std::vector<std::string> headers = {"group", "rows", "coverage", "at all times within"};
  return html_section("groups", "Groups", html_table(headers, rows));
}

// Members of the JSON's timeline, each a line over the periods.
std::vector<Figure> timeline_figures(const MonitorReport& report) {
  const bool adapted = report.adapted_covered.rows > 0;
  const double threshold = -std::log10(report.options.false_alarms / 3);
  Json coverage = {{"y", "coverage"}, {"line", 1 - report.options.level.value()}, {"high", 1}};
  // What is far above the threshold stands at the edge.
  Json evidence = {
      {"y", "log10 of the capital"}, {"line", threshold}, {"low", 0}, {"most", 6 * threshold}};
  evidence["series"] = Json::array();
  Json size = {{"y", "mean size"}, {"low", 0}};
  const auto add = [](Json& chart, const char* name, const char* member) {
    chart["series"].push_back(Json::array({name, member}));
  };
  add(coverage, "coverage of the period", "coverage");
  add(size, "mean size, infinite ones left out", "size");
  if (adapted) add(coverage, "adapted", "adapted_coverage");
  if (adapted) add(size, "adapted", "adapted_size");
  if (report.watches_exchangeability) add(evidence, "exchangeability", "log10_exchangeability");
  if (report.watches_coverage) add(evidence, "coverage", "log10_coverage");
  if (report.watches_drift) add(evidence, "drift of inputs", "log10_drift");
  return {{.caption = "Coverage over time", .chart = {"timeline", coverage}, .wide = true},
          {.caption = "Evidence of change",
           .remark = "A capital that reaches 1/ε is an alarm; by Ville's inequality it ever does "
                     "so by chance with probability at most ε.",
           .chart = {"timeline", evidence},
           .wide = true},
          {.caption = "Size over time", .chart = {"timeline", size}, .wide = true}};
}

}  // namespace

std::string alarm_place(const MonitorAlarm& alarm) {
  return concat(with_time(alarm.row, alarm.time), ", since about ",
                with_time(alarm.since, alarm.began));
}

std::string monitor_text(const MonitorReport& report) {
  std::string text = concat(format_count(report.rows, "row"), ", coverage ",
                            format_percent(report.covered.rate()), " (at all times within ",
                            format_percent_range(report.sequence.lower, report.sequence.upper),
                            "), promised ", format_target(report.options.level), "\n");
  if (report.adapted_covered.rows > 0) {
    text += concat("adapted: coverage ", format_percent(report.adapted_covered.rate()),
                   ", mean size ", size_cell(report.adapted_size), "\n");
  }
  text += concat("\n", timeline_table(report).text(), "\n");
  for (const GroupCount& group : report.groups) {
    text += concat("group ", group.name, ": ", format_count(group.covered.rows, "row"),
                   ", coverage ", format_percent(group.covered.rate()), " (",
                   format_percent_range(group.sequence.lower, group.sequence.upper), ")\n");
  }
  if (!report.watches_exchangeability) {
    text += "not watched: exchangeability, because calibration has weights\n";
  }
  if (!report.watches_coverage) {
    text += "not watched: coverage, because no law of it is known for this calibration\n";
  }
  for (const MonitorAlarm& alarm : report.alarms) {
    text += concat("ALARM ", alarm.kind, " at ", alarm_place(alarm), ": ", alarm.what, "\n");
  }
  if (report.alarms.empty()) {
    text += concat("no alarm (false alarms over all time: at most ",
                   format_percent(report.options.false_alarms), ")\n");
  }
  return text;
}

nlohmann::ordered_json monitor_json(const MonitorReport& report) {
  Json json = {{"alarm", !report.alarms.empty()}, {"alpha", report.options.level.value()}};
  json["false_alarms"] = report.options.false_alarms;
  put_rate(json, report.covered, report.sequence);
  json["size"] = json_number(report.size.mean());
  json["infinite"] = report.size.infinite;
  if (report.adapted_covered.rows > 0) {
    json["adapted_coverage"] = report.adapted_covered.rate();
    json["adapted_size"] = json_number(report.adapted_size.mean());
    json["adapted_infinite"] = report.adapted_size.infinite;
  }
  json["log10_exchangeability"] =
      log10_json(report.watches_exchangeability, report.log_exchangeability);
  json["log10_coverage"] = log10_json(report.watches_coverage, report.log_coverage);
  json["log10_drift"] = log10_json(report.watches_drift, report.log_drift);
  json["alarms"] = Json::array();
  for (const MonitorAlarm& alarm : report.alarms) json["alarms"].push_back(alarm_json(alarm));
  json["timeline"] = Json::array();
  for (const TimelinePoint& point : report.timeline) {
    json["timeline"].push_back(point_json(point, report));
  }
  json["groups"] = Json::array();
  for (const GroupCount& group : report.groups) {
    Json one = {{"group", group.name}};
    put_rate(one, group.covered, group.sequence);
    json["groups"].push_back(std::move(one));
  }
  return json;
}

std::string monitor_html(const MonitorReport& report,
                         const std::vector<std::pair<std::string, std::string>>& provenance) {
  const Json data = monitor_json(report);
  const std::string html =
      concat(monitor_headline(report), html_section("alarms", "Alarms", alarms_html(report)),
             html_section("timeline", "Timeline", html_figures(timeline_figures(report))),
             groups_html(report), provenance_section(provenance));
  return html_page("Monitoring", "A calibrated predictor in use, row by row in the order of time",
                   html, data);
}

}  // namespace fcp
