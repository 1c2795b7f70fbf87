#include "fcp/data/date.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace fcp {
namespace {

// Reads from the front of a text.
class DateScanner {
 public:
  explicit DateScanner(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_.front(); }
  bool take(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (take(' ')) continue;
  }
  // Up to `most` digits; −1 where there are none. `digits` tells how many.
  int number(size_t most, size_t* digits = nullptr) {
    int value = 0;
    size_t count = 0;
    while (count < most && peek() >= '0' && peek() <= '9') {
      value = 10 * value + (peek() - '0');
      text_.remove_prefix(1);
      ++count;
    }
    if (digits != nullptr) *digits = count;
    return count == 0 ? -1 : value;
  }
  // "Q", " Q" or "-Q"
  bool take_quarter() {
    const size_t at = peek() == ' ' || peek() == '-' ? 1 : 0;
    if (text_.size() <= at || (text_[at] | 32) != 'q') return false;
    text_.remove_prefix(at + 1);
    return true;
  }
  std::string letters() {
    std::string word;
    while ((peek() | 32) >= 'a' && (peek() | 32) <= 'z') {
      word += static_cast<char>(peek() | 32);
      text_.remove_prefix(1);
    }
    return word;
  }

 private:
  std::string_view text_;
};

// 1 to 12 for an English name or its first three letters; 0 for anything else.
int month_named(const std::string& word) {
  constexpr std::array<std::string_view, 12> kMonths = {
      "january", "february", "march",     "april",   "may",      "june",
      "july",    "august",   "september", "october", "november", "december"};
  for (size_t i = 0; i < kMonths.size(); ++i) {
    if (word.size() >= 3 && kMonths[i].starts_with(word)) return static_cast<int>(i) + 1;
  }
  return word == "sept" ? 9 : 0;
}

struct CivilDate {
  int year = 0, month = 0, day = 0;
};

int full_year(int year, size_t digits) {
  if (digits != 2) return digits == 4 ? year : -1;
  return year < 70 ? 2000 + year : 1900 + year;
}

// The first day of a quarter of a year, behind its Q.
std::optional<CivilDate> first_of_quarter(DateScanner& scan, int year) {
  const int quarter = scan.number(1);
  if (quarter < 1 || quarter > 4) return std::nullopt;
  return CivilDate{year, 3 * quarter - 2, 1};
}

// "Mar 31, 2024", "Mar-2024", "Q3 1979"
std::optional<CivilDate> name_first(DateScanner& scan) {
  size_t digits = 0;
  if (scan.take_quarter()) {
    auto date = first_of_quarter(scan, 0);
    if (!scan.take('-')) scan.skip_spaces();
    const int year = scan.number(4, &digits);
    if (date) date->year = digits == 4 ? year : -1;
    return date;
  }
  CivilDate date;
  date.month = month_named(scan.letters());
  scan.take('.');
  const bool joined = scan.take('-');
  scan.skip_spaces();
  const int number = scan.number(4, &digits);
  if (digits == 4) return CivilDate{number, date.month, 1};
  if (joined || digits > 2) return std::nullopt;
  date.day = number;
  scan.take(',');
  scan.skip_spaces();
  const int year = scan.number(4, &digits);
  date.year = full_year(year, digits);
  return date;
}

// "2024-03-31", "31.3.2024", "3/31/24", "31 Mar 2024", "31-Mar-2024", "20240331", "1979 Q3"
std::optional<CivilDate> number_first(DateScanner& scan, DateOrder order) {
  size_t digits = 0, more = 0;
  const int first = scan.number(4, &digits);
  if (digits == 4 && scan.peek() >= '0' && scan.peek() <= '9') {
    const int month = scan.number(2), day = scan.number(2, &more);
    return more == 2 ? std::optional(CivilDate{first, month, day}) : std::nullopt;
  }
  if (digits == 4 && scan.take_quarter()) return first_of_quarter(scan, first);
  const char mark = scan.peek();
  if (mark != '-' && mark != '/' && mark != '.' && mark != ' ') return std::nullopt;
  scan.take(mark);
  const int named = month_named(scan.letters());
  if (mark == ' ' && named == 0) return std::nullopt;
  const int second = named > 0 ? named : scan.number(2);
  if (!scan.take(mark)) return std::nullopt;
  if (digits == 4) return CivilDate{first, second, scan.number(2)};
  const bool day_first = named > 0 || mark == '.' || order == DateOrder::kDayFirst;
  const int year = scan.number(4, &digits);
  const CivilDate date{full_year(year, digits), day_first ? second : first,
                       day_first ? first : second};
  return date;
}

// The time of day in days, moved to UTC; none where the text is not a time.
std::optional<double> time_of_day(DateScanner& scan) {
  int hour = scan.number(2);
  if (hour < 0 || hour > 24 || !scan.take(':')) return std::nullopt;
  const int minute = scan.number(2);
  double second = 0;
  if (scan.take(':')) {
    const int whole = scan.number(2);
    if (whole < 0 || whole > 60) return std::nullopt;
    second = whole;
    size_t digits = 0;
    if (scan.take('.') || scan.take(',')) {
      double unit = 0.1;
      for (int digit; (digit = scan.number(1, &digits)) >= 0; unit /= 10) second += digit * unit;
    }
  }
  if (minute < 0 || minute > 59) return std::nullopt;
  scan.skip_spaces();
  double zone = 0;
  if (scan.peek() == '+' || scan.peek() == '-') {
    const double sign = scan.take('+') ? 1 : (scan.take('-'), -1);
    const int hours = scan.number(2);
    scan.take(':');
    const int minutes = scan.number(2);
    if (hours < 0) return std::nullopt;
    zone = sign * (hours + (minutes < 0 ? 0 : minutes) / 60.0);
  } else if (const std::string word = scan.letters(); word == "am" || word == "pm") {
    if (hour < 1 || hour > 12) return std::nullopt;
    hour = hour % 12 + (word == "pm" ? 12 : 0);
  } else if (!word.empty() && word != "z" && word != "utc") {
    return std::nullopt;
  }
  return (hour - zone) / 24 + minute / 1440.0 + second / 86400;
}

}  // namespace

bool parse_date(std::string_view text, DateOrder order, double& days) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.size() < 4 || text.size() > 40) return false;
  DateScanner scan(text);
  if (text[1] == ':' || text[2] == ':') {  // a time alone
    const auto time = time_of_day(scan);
    days = time.value_or(0);
    return time && scan.done();
  }
  if (text.size() < 6) return false;
  const bool digit = scan.peek() >= '0' && scan.peek() <= '9';
  const auto date = digit ? number_first(scan, order) : name_first(scan);
  if (!date || date->year < 0 || date->month < 1 || date->day < 1) return false;
  const std::chrono::year_month_day civil{std::chrono::year(date->year),
                                          std::chrono::month(static_cast<unsigned>(date->month)),
                                          std::chrono::day(static_cast<unsigned>(date->day))};
  if (!civil.ok()) return false;
  constexpr std::chrono::sys_days kOrigin =
      std::chrono::year(2000) / std::chrono::January / std::chrono::day(1);
  const auto count = (std::chrono::sys_days(civil) - kOrigin).count();
  days = static_cast<double>(count);
  if (scan.done()) return true;
  const bool marked = scan.take('T') || scan.take(' ') || scan.take(',');
  scan.skip_spaces();
  const auto time = marked ? time_of_day(scan) : std::nullopt;
  if (!time || !scan.done()) return false;
  days += *time;
  return true;
}

}  // namespace fcp
