// The times of rows as their files write them: numbers, or text that begins like 2026-11-16 or
// 2026-11-16T05:27. Tested by tests/base/times_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

bool is_date(std::string_view text);

// An Error names the row (from 0) whose time is of another kind than the first, or earlier than
// that of the row before.
void check_times(const std::vector<std::string>& times);
[[noreturn]] void fail_time(size_t row, const std::string& found, const std::string& expected);

// Of two times. An Error where one is a number and the other a date.
bool is_earlier(const std::string& time, const std::string& than);

}  // namespace fcp
