// The periods of a timeline: years, months, days or hours of rows with times, or so many rows each.
// Tested by tests/monitoring/periods_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fcp {

// The label of each row's period, of times as in fcp/base/times.h. `unit`: year, month, day or
// hour, of times that are dates.
std::vector<std::string> calendar_periods(const std::vector<std::string>& times,
                                          const std::string& unit);

// The label of row `row` (from 0) where periods have `every` rows: "rows 0–999"; with times, the
// time of the period's first row.
std::string counted_period(size_t row, size_t every, const std::vector<std::string>& times);

}  // namespace fcp
