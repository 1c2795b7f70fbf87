#include <cmath>

#include <nlohmann/json.hpp>

#include "apps/report/json.h"
#include "apps/report/monitor_report.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

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

}  // namespace fcp
