// Dates and times in text files as numbers: days since 2000-01-01, the time of day as a fraction.
// float32 then keeps a time of this century to about a minute.
//
// Read are 2024-03-31, 20240331, 2024/3/31, 31.3.2024, 31/03/24, 31 Mar 2024, March 31, 2024, each
// with a time behind it (a space or T, 14:05, 14:05:09.5, 2:05 PM, and Z or +02:00, moving it to
// UTC); Mar-2024, 2024 Q1 and Q1 2024, their first days; and a time alone, a share of a day.
// Where both day and month could be meant the order decides. Tested by tests/data/date_test.cc.
#pragma once

#include <string_view>

namespace fcp {

enum class DateOrder { kMonthFirst, kDayFirst };

// Whether all of `text` (spaces around it allowed) is a date, and which.
bool parse_date(std::string_view text, DateOrder order, double& days);

}  // namespace fcp
