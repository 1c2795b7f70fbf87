// A table of text with aligned columns, for the terminal.
//
//   Table table({"method", "coverage"});
//   table.add_row({"nested", "90.3 %"});
//   std::cout << table;
//
// A column is aligned to the right where all its cells are numbers (they begin with a digit, a
// sign, ∞ or –), otherwise to the left. A table whose headers are all empty has no line of headers.
// Tested by tests/report/console_test.cc.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  // Missing cells are empty; more cells than headers are a mistake of the caller and throw
  // std::invalid_argument.
  void add_row(std::vector<std::string> cells);
  void add_gap();  // an empty line between sections

  // All lines, each ended by a newline and without blanks at its end.
  std::string text(size_t indent = 0) const;

 private:
  bool is_numeric(size_t column) const;
  size_t width(size_t column) const;

  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;  // a gap is a row without cells
};

std::ostream& operator<<(std::ostream& out, const Table& table);

// Numbers as people read them, in messages, tables and on the page.
//
// Infinities are "∞" and "−∞", an undefined value is "–". The minus sign is U+2212.
// Tested by tests/report/console_test.cc.

// With so many significant digits: "1.753", "0.08120", "12,346"; "1.235e9" from a thousand million
// on.
std::string format_number(double value, int digits = 4);

// Digits as "12345.6" with separators, as "12,345.6".
std::string group_digits(std::string digits);

// A fraction in [0, 1] as "90.3 %".
std::string format_percent(double fraction, int decimals = 1);

// "89.1–91.4 %".
std::string format_percent_range(double low, double high, int decimals = 1);

// "12,345".
std::string format_count(size_t count);

// "12,345 test rows", "1 test row".
std::string format_count(size_t count, std::string_view noun);

// How many columns a UTF-8 text takes: code points, those that combine with the one before left
// out.
size_t display_width(std::string_view text);

// The times of rows as their files write them: numbers, or text that begins like 2026-11-16 or
// 2026-11-16T05:27. Tested by tests/base/text_table_test.cc.

bool is_date(std::string_view text);

// An Error names the row (from 0) whose time is of another kind than the first, or earlier than
// that of the row before.
void check_times(const std::vector<std::string>& times);
[[noreturn]] void fail_time(size_t row, const std::string& found, const std::string& expected);

// Of two times. An Error where one is a number and the other a date.
bool is_earlier(const std::string& time, const std::string& than);

}  // namespace fcp
