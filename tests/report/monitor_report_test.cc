#include "apps/report/monitor_report.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fcp/base/random.h"

#include "tests/report/page_checks.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Scores that become three times as large after half of the rows, with regions that adapt.
MonitorReport changed_report(double factor) {
  Random random(1);
  MonitoredCalibration calibration;
  std::vector<double> scores(200);
  for (double& score : scores) score = std::abs(random.normal());
  calibration.scores = {{scores}};
  Monitor monitor({}, calibration, std::nullopt);
  for (size_t t = 0; t < 1000; ++t) {
    const double score = std::abs(random.normal()) * (t < 500 ? 1 : factor);
    MonitoredRow row;
    row.scores = {&score, 1};
    row.covered = score <= 1.645;
    row.size = t % 100 == 0 ? std::numeric_limits<double>::infinity() : 3.29;
    row.shown = "<b>";
    monitor.take(row, t < 500 ? "2026-01" : "2026-02", AdaptedRow{0.05, score <= 2, 4});
  }
  MonitorReport report = monitor.report();
  for (MonitorAlarm& alarm : report.alarms) alarm.time = "2026-02-03";
  return report;
}

TEST(MonitorReport, TextNamesAlarms) {
  const std::string text = monitor_text(changed_report(3));
  EXPECT_THAT(text, HasSubstr("ALARM coverage at row "));
  EXPECT_THAT(text, HasSubstr("ALARM exchangeability at row "));
  EXPECT_THAT(text, HasSubstr("(2026-02-03), since about row "));
  EXPECT_THAT(text, HasSubstr("2026-01"));
  EXPECT_THAT(text, HasSubstr("5 × ∞"));
  EXPECT_THAT(text, Not(HasSubstr("no alarm")));
  EXPECT_THAT(monitor_text(changed_report(1)), HasSubstr("no alarm"));
}

TEST(MonitorReport, JsonHasTheNamesOfScripts) {
  const MonitorReport report = changed_report(3);
  const nlohmann::ordered_json json = monitor_json(report);
  EXPECT_TRUE(json["alarm"].get<bool>());
  EXPECT_EQ(json["rows"].get<size_t>(), 1000u);
  EXPECT_DOUBLE_EQ(json["coverage"].get<double>(), report.covered.rate());
  EXPECT_LT(json["coverage_low"].get<double>(), json["coverage"].get<double>());
  ASSERT_EQ(json["timeline"].size(), 2u);
  EXPECT_EQ(json["timeline"][1]["period"], "2026-02");
  EXPECT_NEAR(json["timeline"][1]["level"].get<double>(), 0.05, 1e-12);
  EXPECT_EQ(json["timeline"][0]["infinite"].get<size_t>(), 5u);
  EXPECT_TRUE(json["log10_drift"].is_null());
  EXPECT_EQ(json["alarms"][0]["time"], "2026-02-03");
  EXPECT_TRUE(json["alarms"][0]["began"].is_null());
  EXPECT_EQ(json["groups"][0]["group"], "<b>");
  EXPECT_FALSE(monitor_json(changed_report(1))["alarm"].get<bool>());
}

TEST(MonitorReport, PageIsWellFormed) {
  const std::string page = monitor_html(changed_report(3), {{"predictor", "a.onnx"}});
  testing::expect_well_formed(page);
  testing::expect_self_contained(page);
  EXPECT_THAT(testing::kinds_of(page), ::testing::ElementsAre("timeline", "timeline", "timeline"));
  const nlohmann::json evidence = testing::chart_data(page, "Evidence of change");
  EXPECT_EQ(evidence["series"][1][1], "log10_coverage");
  EXPECT_TRUE(testing::page_json(page)["timeline"][0].contains("log10_coverage"));
  EXPECT_THAT(page, HasSubstr("Evidence of change"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(page, HasSubstr("a.onnx"));
  testing::expect_well_formed(monitor_html(changed_report(1), {}));
}

}  // namespace
}  // namespace fcp
