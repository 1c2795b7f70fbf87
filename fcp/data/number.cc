#include "fcp/data/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

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

namespace {

constexpr std::pair<ColumnKind, std::string_view> kKindNames[] = {
    {ColumnKind::kNumber, "number"},     {ColumnKind::kCategory, "category"},
    {ColumnKind::kDate, "date"},         {ColumnKind::kBoolean, "boolean"},
    {ColumnKind::kConstant, "constant"}, {ColumnKind::kIdentifier, "identifier"},
    {ColumnKind::kText, "text"}};

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Signs and units around the digits: "-$1,200", "$-5", "(1,200)", "12 %", "€ 3". Returns what is
// left and whether it is negative; empty where a sign comes twice.
std::string_view strip_units(std::string_view text, bool& negative) {
  constexpr std::array<std::string_view, 10> kUnits = {"$", "€",  "£",      "¥",   "%",
                                                       " ", "\t", "\u00a0", "USD", "EUR"};
  negative = text.size() > 2 && text.front() == '(' && text.back() == ')';
  if (negative) text = text.substr(1, text.size() - 2);
  bool signs = negative, again = true;
  while (again && !text.empty()) {
    again = false;
    for (const std::string_view unit : kUnits) {
      if (text.starts_with(unit)) {
        text.remove_prefix(unit.size());
        again = true;
      }
      if (text.ends_with(unit)) {
        text.remove_suffix(unit.size());
        again = true;
      }
    }
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
      if (signs) return {};
      negative = text.front() == '-';
      signs = again = true;
      text.remove_prefix(1);
    }
  }
  return text;
}

// How many bytes at the front separate groups of three digits; 0 for none.
size_t group_mark(std::string_view text, char thousands) {
  if (text.starts_with(thousands) || text.starts_with(' ') || text.starts_with('\'')) return 1;
  if (text.starts_with("\u00a0")) return 2;
  return text.starts_with("\u202f") || text.starts_with("\u2009") ? 3 : 0;
}

}  // namespace

std::string format_text(const CellFormat& format) {
  std::string text;
  for (const auto& [kind, name] : kKindNames) {
    if (kind == format.kind) text = name;
  }
  if (format.kind == ColumnKind::kDate && format.order == DateOrder::kDayFirst) text += ":dmy";
  if (format.kind == ColumnKind::kNumber && format.style != NumberStyle::kPlain) {
    text += format.style == NumberStyle::kPoint ? ":point" : ":comma";
  }
  return text;
}

std::optional<CellFormat> parse_format(std::string_view text) {
  if (text == "number:point") return CellFormat{ColumnKind::kNumber, NumberStyle::kPoint};
  if (text == "number:comma") return CellFormat{ColumnKind::kNumber, NumberStyle::kComma};
  if (text == "date:mdy") return CellFormat{ColumnKind::kDate};
  if (text == "date:dmy") {
    return CellFormat{ColumnKind::kDate, NumberStyle::kPlain, DateOrder::kDayFirst};
  }
  for (const auto& [kind, name] : kKindNames) {
    if (text == name) return CellFormat{kind};
  }
  return std::nullopt;
}

bool is_read(ColumnKind kind) {
  return kind == ColumnKind::kNumber || kind == ColumnKind::kCategory ||
         kind == ColumnKind::kDate || kind == ColumnKind::kBoolean || kind == ColumnKind::kText;
}

std::string expected_text(ColumnKind kind) {
  if (kind == ColumnKind::kDate) return "a date";
  if (kind == ColumnKind::kBoolean) return "true or false";
  if (kind == ColumnKind::kText) return "a text";
  return kind == ColumnKind::kCategory ? "a category" : "a number";
}

bool parse_styled_number(std::string_view text, NumberStyle style, double& value) {
  if (style == NumberStyle::kPlain) return parse_number(text, value);
  bool negative = false;
  text = strip_units(without_blanks(text), negative);
  constexpr size_t kLongest = 40;
  if (text.empty() || text.size() > kLongest || text[0] < '+' || text[0] > '9') return false;
  const char point = style == NumberStyle::kComma ? ',' : '.';
  const char thousands = style == NumberStyle::kComma ? '.' : ',';
  std::array<char, kLongest> plain;
  size_t length = 0, digits = 0;  // digits: in the current group
  bool grouped = false;
  while (!text.empty() && text[0] != point && text[0] != 'e' && text[0] != 'E') {
    const size_t mark = group_mark(text, thousands);
    if (mark > 0) {
      if (digits == 0 || digits > 3 || (grouped && digits != 3)) return false;
      grouped = true;
      digits = 0;
      text.remove_prefix(mark);
    } else if (text[0] >= '0' && text[0] <= '9') {
      plain[length++] = text[0];
      ++digits;
      text.remove_prefix(1);
    } else {
      return false;
    }
  }
  if (grouped && digits != 3) return false;
  for (const char c : text) plain[length++] = c == point ? '.' : c;
  if (length == 0 || plain[0] == '+' || plain[0] == '-') return false;
  if (!parse_number(std::string_view(plain.data(), length), value)) return false;
  if (negative) value = -value;
  return true;
}

bool parse_boolean(std::string_view text, double& value) {
  text = without_blanks(text);
  if (text.size() < 2 || text.size() > 5) return false;
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 32 : c);
  value = lower == "true" || lower == "yes" ? 1 : 0;
  return value == 1 || lower == "false" || lower == "no";
}

bool parse_cell(std::string_view text, const CellFormat& format, double& value) {
  switch (format.kind) {
    case ColumnKind::kDate:
      return parse_date(text, format.order, value);
    case ColumnKind::kBoolean:
      return parse_boolean(text, value);
    default:
      return format.style == NumberStyle::kPlain ? parse_number(text, value)
                                                 : parse_styled_number(text, format.style, value);
  }
}

}  // namespace fcp
