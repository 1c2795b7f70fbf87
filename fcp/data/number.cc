#include "fcp/data/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fcp {

namespace {

constexpr std::array<double, 23> kPowersOfTen = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The road for everything unusual: many digits, extreme exponents, infinities, wrong text.
bool parse_slowly(std::string_view text, double& value) {
  text = without_spaces(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) {
    // from_chars leaves the value alone; which side of the range it is on shows in the text.
    const size_t mark = text.find_first_of("eE");
    const std::string_view magnitude = text.substr(text[0] == '-' ? 1 : 0);
    const bool tiny = mark == std::string_view::npos ? magnitude[0] == '0' || magnitude[0] == '.'
                                                     : text[mark + 1] == '-';
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    if (text[0] == '-') value = -value;
  }
  return !std::isnan(value);
}

// Reads digits at p into `mantissa` and returns how many.
inline int read_digits(const char*& p, const char* end, uint64_t& mantissa) {
  const char* const first = p;
  while (p != end && is_digit(*p)) mantissa = mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
  return static_cast<int>(p - first);
}

}  // namespace

bool parse_number(std::string_view text, double& value) {
  if (text.size() > 24) return parse_slowly(text, value);  // 19 digits, sign, point and exponent
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p != end && *p == '-';
  if (p != end && (*p == '-' || *p == '+')) ++p;

  uint64_t mantissa = 0;
  int digits = read_digits(p, end, mantissa);
  int exponent = 0;
  if (p != end && *p == '.') {
    ++p;
    const int decimals = read_digits(p, end, mantissa);
    digits += decimals;
    exponent = -decimals;
  }
  if (digits == 0 || digits > 19) return parse_slowly(text, value);
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool minus = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    uint64_t power = 0;
    const int power_digits = read_digits(p, end, power);
    if (power_digits == 0 || power_digits > 3) return parse_slowly(text, value);
    exponent += minus ? -static_cast<int>(power) : static_cast<int>(power);
  }
  // m · 10^e with both factors exact: one rounding, hence the correct one.
  if (p != end || mantissa > (uint64_t{1} << 53) || exponent < -22 || exponent > 22) {
    return parse_slowly(text, value);
  }
  const double magnitude = static_cast<double>(mantissa);
  value = exponent < 0 ? magnitude / kPowersOfTen[static_cast<size_t>(-exponent)]
                       : magnitude * kPowersOfTen[static_cast<size_t>(exponent)];
  if (negative) value = -value;
  return true;
}

bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 13> kMarks = {
      "NA", "N/A", "NaN", "nan", "?", "null", "NULL", "None", "n/a", "#N/A", "<NA>", "NaT", "-nan"};
  text = without_spaces(text);
  if (text.empty()) return true;
  if (text.size() > 4) return false;
  return std::find(kMarks.begin(), kMarks.end(), text) != kMarks.end();
}

char* write_number(float value, char* out) {
  if (std::isnan(value)) return std::copy_n("nan", 3, out);
  return std::to_chars(out, out + kNumberLength, value).ptr;
}

std::string number_text(float value) {
  std::array<char, kNumberLength> text;
  return std::string(text.data(), write_number(value, text.data()));
}

}  // namespace fcp
