#include "fcp/monitoring/periods.h"

#include "fcp/base/error.h"
#include "fcp/base/times.h"

namespace fcp {
namespace {

// As many characters as the unit has of 2026-11-16T05.
size_t unit_width(const std::string& unit) {
  if (unit == "year") return 4;
  if (unit == "month") return 7;
  if (unit == "day") return 10;
  if (unit == "hour") return 13;
  fail_option("period", "found '", unit, "', expected year, month, day or hour");
}

}  // namespace

std::vector<std::string> calendar_periods(const std::vector<std::string>& times,
                                          const std::string& unit) {
  const size_t width = unit_width(unit);
  std::vector<std::string> periods;
  for (size_t row = 0; row < times.size(); ++row) {
    if (!is_date(times[row]) || times[row].size() < width) {
      fail_time(row, times[row], concat("a date that tells the ", unit));
    }
    periods.push_back(times[row].substr(0, width));
  }
  return periods;
}

std::string counted_period(size_t row, size_t every, const std::vector<std::string>& times) {
  const size_t first = row / every * every;
  return times.empty() ? concat("rows ", first, "–", first + every - 1) : times.at(first);
}

}  // namespace fcp
