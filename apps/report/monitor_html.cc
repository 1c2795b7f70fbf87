#include "fcp/base/error.h"

#include "apps/report/format.h"
#include "apps/report/monitor_report.h"
#include "apps/report/page.h"
#include "apps/report/sections.h"

namespace fcp {
namespace {

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

}  // namespace

std::string monitor_html(const MonitorReport& report,
                         const std::vector<std::pair<std::string, std::string>>& provenance) {
  const std::vector<Figure> figures = {
      {.caption = "Coverage over time", .chart = coverage_timeline_chart(report), .wide = true},
      {.caption = "Evidence of change",
       .remark = "A capital that reaches 1/ε is an alarm; by Ville's inequality it ever does so by "
                 "chance with probability at most ε.",
       .chart = capital_timeline_chart(report),
       .wide = true},
      {.caption = "Size over time", .chart = size_timeline_chart(report), .wide = true}};
  const std::string html =
      concat(monitor_headline(report), html_section("alarms", "Alarms", alarms_html(report)),
             html_section("timeline", "Timeline", html_figures(figures)), groups_html(report),
             provenance_section(provenance));
  return html_page("Monitoring", "A calibrated predictor in use, row by row in the order of time",
                   html);
}

}  // namespace fcp
