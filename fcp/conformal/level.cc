#include "fcp/level.h"

#include <charconv>
#include <limits>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr const char* kExpected = "a number strictly between 0 and 1, such as 0.1";
constexpr int kMaxDigits = 18;    // so that the numerator fits 64 bits
constexpr int kMaxDecimals = 38;  // so that the denominator fits 128 bits

constexpr int kDoubleDigits = std::numeric_limits<double>::digits10;

// A decimal number digits · 10^(−decimals), its digits without leading or trailing zeros.
struct Decimal {
  std::string digits;
  int decimals = 0;
};

[[noreturn]] void reject(std::string_view text, const char* expected) {
  fail("the level alpha is \"", text, "\"; expected ", expected);
}

bool is_digit(char c) { return '0' <= c && c <= '9'; }

// The exponent after the letter e: an optional sign and digits.
int parse_exponent(std::string_view text, std::string_view exponent) {
  if (exponent.starts_with("+-")) reject(text, kExpected);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int value = 0;
  const auto [end, error] =
      std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
  const bool complete = end == exponent.data() + exponent.size();
  if (error == std::errc::result_out_of_range || value > 1000 || value < -1000) {
    reject(text, "an exponent of a sensible size");
  }
  if (error != std::errc() || !complete) reject(text, kExpected);
  return value;
}

Decimal parse_decimal(std::string_view text) {
  Decimal number;
  size_t at = text.starts_with('+') ? 1 : 0;
  bool any = false;
  bool after_point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !after_point) {
      after_point = true;
    } else if (is_digit(text[at])) {
      any = true;
      number.decimals += after_point;
      if (!number.digits.empty() || text[at] != '0') number.digits += text[at];
    } else {
      break;
    }
  }
  if (!any) reject(text, kExpected);
  if (at < text.size()) {
    if (text[at] != 'e' && text[at] != 'E') reject(text, kExpected);
    number.decimals -= parse_exponent(text, text.substr(at + 1));
  }
  while (number.digits.ends_with('0')) {
    number.digits.pop_back();
    --number.decimals;
  }
  return number;
}

template <typename Integer>
Integer greatest_common_divisor(Integer a, Integer b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

}  // namespace

Level::Level(uint64_t numerator, Wide denominator, std::string text) : text_(std::move(text)) {
  if (numerator == 0 || numerator >= denominator) reject(text_, kExpected);
  const Wide common = greatest_common_divisor<Wide>(numerator, denominator);
  numerator_ = static_cast<uint64_t>(numerator / common);
  denominator_ = denominator / common;
}

Level Level::parse(std::string_view text) {
  const Decimal number = parse_decimal(text);
  // d digits with fewer than d decimals after them make a number of at least 1.
  if (number.digits.empty() || number.decimals < static_cast<int>(number.digits.size())) {
    reject(text, kExpected);
  }
  if (number.digits.size() > kMaxDigits) reject(text, "at most 18 significant digits");
  if (number.decimals > kMaxDecimals) reject(text, "at most 38 decimals");
  uint64_t numerator = 0;
  for (const char digit : number.digits) {
    numerator = 10 * numerator + static_cast<uint64_t>(digit - '0');
  }
  Wide denominator = 1;
  for (int i = 0; i < number.decimals; ++i) denominator *= 10;
  return Level(numerator, denominator, std::string(text));
}

Level Level::fraction(uint64_t numerator, uint64_t denominator) {
  return Level(numerator, denominator, concat(numerator, "/", denominator));
}

Level::Level(double alpha)
    : Level([alpha] {
        char buffer[32];
        const auto result = std::to_chars(buffer, buffer + sizeof buffer, alpha,
                                          std::chars_format::general, kDoubleDigits);
        return parse({buffer, result.ptr});
      }()) {}

Level Level::divided_by(uint64_t parts) const {
  if (parts == 0 || denominator_ > ~Wide{0} / parts) {
    fail("the level alpha ", text_, " cannot be divided by ", parts);
  }
  return Level(numerator_, denominator_ * parts, concat(text_, "/", parts));
}

uint64_t Level::floor_times(uint64_t count) const {
  return static_cast<uint64_t>(Wide{numerator_} * count / denominator_);
}

double Level::value() const {
  // Rounded once where both are doubles, as a p-value k / (n + 1) is: equal fractions are equal.
  constexpr Wide kExact = Wide{1} << std::numeric_limits<double>::digits;
  if (denominator_ <= kExact) {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }
  return static_cast<double>(static_cast<long double>(numerator_) /
                             static_cast<long double>(denominator_));
}

}  // namespace fcp
