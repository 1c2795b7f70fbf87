#include "fcp/base/text_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/text.h"

namespace fcp {
namespace {

constexpr std::string_view kColumnGap = "  ";
constexpr size_t kLongestRule = 100;  // a cell may be any text, and the rule need not follow it

bool begins_like_a_number(std::string_view cell) {
  constexpr std::array<std::string_view, 7> kStarts = {"−", "∞", "–", "±", "-", "+", "."};
  if (cell.front() >= '0' && cell.front() <= '9') return true;
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return cell.starts_with(start); });
}

std::string padded(const std::string& cell, size_t width, bool right) {
  const std::string blanks(width - display_width(cell), ' ');
  return right ? blanks + cell : cell + blanks;
}

void append_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

}  // namespace

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() > headers_.size()) throw std::invalid_argument("a row wider than its table");
  cells.resize(headers_.size());
  for (std::string& cell : cells) cell = printable(cell);  // names may come from anywhere
  rows_.push_back(std::move(cells));
}

void Table::add_gap() { rows_.emplace_back(); }

bool Table::is_numeric(size_t column) const {
  bool any = false;
  for (const auto& row : rows_) {
    if (row.empty() || row[column].empty()) continue;
    if (!begins_like_a_number(row[column])) return false;
    any = true;
  }
  return any;
}

size_t Table::width(size_t column) const {
  size_t widest = display_width(headers_[column]);
  for (const auto& row : rows_) {
    if (!row.empty()) widest = std::max(widest, display_width(row[column]));
  }
  return widest;
}

std::string Table::text(size_t indent) const {
  const std::string margin(indent, ' ');
  std::vector<size_t> widths;
  std::vector<bool> numeric;
  size_t total = 0;
  for (size_t column = 0; column < headers_.size(); ++column) {
    widths.push_back(width(column));
    numeric.push_back(is_numeric(column));
    total += widths.back() + (column > 0 ? kColumnGap.size() : 0);
  }
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line = margin;
    for (size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) line += kColumnGap;
      line += padded(cells[column], widths[column], numeric[column]);
    }
    return line;
  };

  std::string text;
  const auto named = [](const std::string& header) { return !header.empty(); };
  if (std::any_of(headers_.begin(), headers_.end(), named)) {
    append_line(text, line_of(headers_));
    std::string rule = margin;
    for (size_t i = 0; i < std::min(total, kLongestRule); ++i) rule += "─";
    append_line(text, rule);
  }
  for (const auto& row : rows_) append_line(text, line_of(row));
  return text;
}

std::ostream& operator<<(std::ostream& out, const Table& table) { return out << table.text(); }

namespace {

constexpr double kScientificFrom = 1e9;
constexpr double kScientificBelow = 1e-4;

std::string printed(double value, std::chars_format format, int precision) {
  char text[400];  // the longest fixed double has 309 digits before the point
  const auto end = std::to_chars(text, text + sizeof(text), value, format, precision);
  return std::string(text, end.ptr);
}

// "1.235e+06" as "1.235e6".
std::string short_exponent(std::string text) {
  const size_t exponent = text.find('e') + 1;
  const bool negative = text[exponent] == '-';
  const size_t digits = std::min(text.find_first_not_of('0', exponent + 1), text.size() - 1);
  return text.substr(0, exponent) + (negative ? "−" : "") + text.substr(digits);
}

std::string fixed_percent(double fraction, int decimals) {
  return printed(100 * fraction, std::chars_format::fixed, decimals);
}

}  // namespace

std::string group_digits(std::string digits) {
  const size_t point = std::min(digits.find('.'), digits.size());
  for (size_t at = point; at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string format_number(double value, int digits) {
  if (std::isnan(value)) return "–";
  if (value < 0) return concat("−", format_number(-value, digits));
  if (std::isinf(value)) return "∞";
  if (value == 0) return "0";
  if (value >= kScientificFrom || value < kScientificBelow) {
    return short_exponent(printed(value, std::chars_format::scientific, digits - 1));
  }
  const int leading = static_cast<int>(std::floor(std::log10(value)));
  return group_digits(printed(value, std::chars_format::fixed, std::max(0, digits - 1 - leading)));
}

std::string format_percent(double fraction, int decimals) {
  if (!std::isfinite(fraction)) return format_number(fraction);
  if (fraction < 0) return concat("−", format_percent(-fraction, decimals));
  return fixed_percent(fraction, decimals) + " %";
}

std::string format_percent_range(double low, double high, int decimals) {
  return fixed_percent(low, decimals) + "–" + fixed_percent(high, decimals) + " %";
}

std::string format_count(size_t count) { return group_digits(std::to_string(count)); }

std::string format_count(size_t count, std::string_view noun) {
  return concat(format_count(count), " ", noun, count == 1 ? "" : "s");
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = static_cast<unsigned char>(text[i]);
    const bool continues = (byte & 0xC0) == 0x80;
    // The combining marks U+0300 … U+036F are the bytes CC 80 … CD AF.
    const unsigned next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool combines = byte == 0xCC || (byte == 0xCD && next <= 0xAF);
    if (!continues && !combines) ++width;
  }
  return width;
}

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
