#include "fcp/base/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
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

}  // namespace fcp
