#include "fcp/base/times.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "fcp/base/error.h"

namespace fcp {
namespace {

std::optional<double> plain_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace

bool is_date(std::string_view text) {
  constexpr std::string_view kPattern = "dddd-dd-dd";
  if (text.size() < kPattern.size()) return false;
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kPattern[i] == 'd' ? !digit : text[i] != kPattern[i]) return false;
  }
  return true;
}

void fail_time(size_t row, const std::string& found, const std::string& expected) {
  fail("time: row ", row, " (from 0) is '", found, "', expected ", expected);
}

void check_times(const std::vector<std::string>& times) {
  const bool numbers = !times.empty() && plain_number(times[0]).has_value();
  for (size_t row = 0; row < times.size(); ++row) {
    const std::optional<double> value = plain_number(times[row]);
    if (numbers ? !value : !is_date(times[row])) {
      fail_time(row, times[row], numbers ? "a number" : "a number or a date like 2026-11-16T05:27");
    }
    if (row == 0) continue;
    const std::string& before = times[row - 1];
    if (is_earlier(times[row], before)) {
      fail_time(row, times[row], concat("no earlier time than '", before, "' of the row before"));
    }
  }
}

bool is_earlier(const std::string& time, const std::string& than) {
  const std::optional<double> a = plain_number(time), b = plain_number(than);
  if (a.has_value() != b.has_value()) {
    fail("time: '", a ? time : than, "' is a number and '", a ? than : time,
         "' a date; expected times of one kind");
  }
  return a ? *a < *b : time < than;
}

}  // namespace fcp
