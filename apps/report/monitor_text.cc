#include "fcp/base/error.h"
#include "fcp/base/text_table.h"

#include "apps/report/format.h"
#include "apps/report/monitor_report.h"

namespace fcp {
namespace {

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

}  // namespace fcp
