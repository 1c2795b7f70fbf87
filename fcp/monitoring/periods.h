// The periods of a timeline: years, months, days or hours of rows with times, or so many rows each.
// Tested by tests/monitoring/periods_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fcp {

// Times are numbers, or text that begins like 2026-11-16 or 2026-11-16T05:27. An Error names the
// row (from 0) whose time is neither, or earlier than that of the row before.
void check_times(const std::vector<std::string>& times);

// Of two such times. An Error where one is a number and the other a date.
bool is_earlier(const std::string& time, const std::string& than);

// The label of each row's period. `unit`: year, month, day or hour, of times that are dates.
std::vector<std::string> calendar_periods(const std::vector<std::string>& times,
                                          const std::string& unit);

// The label of row `row` (from 0) where periods have `every` rows: "rows 0–999"; with times, the
// time of the period's first row.
std::string counted_period(size_t row, size_t every, const std::vector<std::string>& times);

}  // namespace fcp
