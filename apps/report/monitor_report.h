// What a monitor has found: as text, as JSON, and as a page with a timeline.
//
// JSON names that scripts rely on: `alarm` is true where anything was raised; `alarms` have `kind`,
// `what`, `row`, `since`, `time`, `began`; `coverage` stands between `coverage_low` and
// `coverage_high`, which hold at all times at once; the points of `timeline` have `period`, `rows`,
// `coverage`, `size`, and with adapting `adapted_coverage`, `adapted_size` and `level`.
// Tested by tests/report/monitor_report_test.cc.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fcp/monitoring/monitor.h"

namespace fcp {

std::string monitor_text(const MonitorReport& report);

nlohmann::ordered_json monitor_json(const MonitorReport& report);

// `provenance` as pairs for the end of the page.
std::string monitor_html(const MonitorReport& report,
                         const std::vector<std::pair<std::string, std::string>>& provenance);

// "row 1200 (2011-03-01), since about row 1100 (2011-02-24)".
std::string alarm_place(const MonitorAlarm& alarm);

}  // namespace fcp
