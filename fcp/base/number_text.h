// Numbers as people read them, in messages, tables and on the page.
//
// Infinities are "∞" and "−∞", an undefined value is "–". The minus sign is U+2212.
// Tested by tests/report/console_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fcp {

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

}  // namespace fcp
