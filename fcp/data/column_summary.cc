#include "fcp/data/column_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fcp/data/csv_head.h"
#include "fcp/data/file_witness.h"
#include "fcp/data/number.h"

namespace fcp {
namespace {

constexpr double kMost = 0.9;         // of the cells: the rest are mistakes
constexpr size_t kFewClasses = 10;    // whole numbers that may be classes
constexpr size_t kEnoughCells = 10;   // before all cells that differ mean anything
constexpr size_t kPartOfCodes = 100;  // of whole numbers: one in so many that can only be a code

bool are_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 00123, 98115-4820
bool is_code(std::string_view cell) {
  if (cell.size() >= 2 && cell[0] == '0') return are_digits(cell);
  return cell.size() == 10 && cell[5] == '-' && are_digits(cell.substr(0, 5)) &&
         are_digits(cell.substr(6));
}

bool is_compact_date(std::string_view cell) {
  double days;
  return cell.size() == 8 && (cell.starts_with("19") || cell.starts_with("20")) &&
         are_digits(cell) && parse_date(cell, DateOrder::kMonthFirst, days);
}

// The words of a name, in small letters: zip_code, zipCode and "Zip Code" are zip and code.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  bool small = false;
  for (const char c : name) {
    const bool large = c >= 'A' && c <= 'Z', letter = large || (c >= 'a' && c <= 'z');
    if (!letter || (large && small)) words.emplace_back();
    if (letter) words.back() += static_cast<char>(c | 32);
    small = letter && !large;
  }
  return words;
}

template <size_t count>
bool is_one_of(const std::array<const char*, count>& known, const std::string& word) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

}  // namespace

void ColumnSummary::add(std::string_view cell) {
  ++cells_;
  if (is_missing(cell)) {
    ++missing_;
    return;
  }
  if (told_apart_ < kCounted) {
    ++told_apart_;
    hashes_.insert(hash_bytes(trimmed(cell)));
  }
  double value = 0;
  const std::string text = trimmed(cell);
  if (is_code(text)) ++codes_;
  if (parse_number(cell, value)) {
    ++plain_;
    if (std::floor(value) == value) ++whole_;
    if (is_compact_date(text)) ++compact_dates_;
    if (plain_ > 1 && value == last_ + 1) ++steps_;
    if (plain_ == 1 ? value >= 0 : value > last_) ++rises_;
    last_ = value;
    return;
  }
  const bool point = parse_styled_number(cell, NumberStyle::kPoint, value);
  const bool comma = parse_styled_number(cell, NumberStyle::kComma, value);
  if (point || comma) {
    ++(point && comma ? either_ : point ? point_ : comma_);
    return;
  }
  words_ += 1 + static_cast<size_t>(std::count(cell.begin(), cell.end(), ' '));
  if (parse_boolean(cell, value)) {
    ++booleans_;
    return;
  }
  const bool month_first = parse_date(cell, DateOrder::kMonthFirst, value);
  const bool day_first = parse_date(cell, DateOrder::kDayFirst, value);
  if (month_first || day_first) ++dates_;
  if (day_first && !month_first) ++day_first_;
  if (month_first && !day_first) ++month_first_;
}

bool ColumnSummary::few_whole_numbers() const {
  return count() > 0 && whole_ == count() && distinct() >= 2 && distinct() <= kFewClasses &&
         10 * distinct() <= count();
}

bool ColumnSummary::counts_rows() const {
  if (missing_ > 0 || whole_ < cells_ || cells_ < kEnoughCells) return false;
  const bool with_gaps = rises_ == cells_ && last_ <= 2 * static_cast<double>(cells_);
  return steps_ + 1 == cells_ || with_gaps;
}

// Whole numbers that stand for something else: a mean of two zip codes is none.
bool ColumnSummary::are_codes() const {
  constexpr std::array kNames = {"zip",  "zipcode", "postcode",  "postal", "plz",  "code",
                                 "fips", "phone",   "telephone", "sku",    "isbn", "ssn"};
  if (whole_ < plain_ || point_ + comma_ + either_ > 0) return false;
  if (codes_ > 0 && codes_ * kPartOfCodes >= count()) return true;
  const std::vector<std::string> words = words_of(name_);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_one_of(kNames, word); });
}

bool ColumnSummary::named_id() const {
  constexpr std::array kNames = {"id",        "ID",      "Id",    "rownames",  "row.names",
                                 "row_names", "rowname", "index", "Unnamed: 0"};
  const bool named = is_one_of(kNames, name_) || name_.ends_with("_id") || name_.ends_with("_ID") ||
                     name_.ends_with("Id");
  return named && whole_ == count() && told_apart_ >= kEnoughCells && distinct() == told_apart_;
}

CellFormat ColumnSummary::number_format(bool commas) const {
  CellFormat format;
  const bool comma = comma_ > point_ || (point_ == 0 && commas && comma_ + either_ > 0);
  if (comma) {
    format.style = NumberStyle::kComma;
  } else if (point_ + either_ > 0) {
    format.style = NumberStyle::kPoint;
  }
  return format;
}

CellFormat ColumnSummary::target_format(bool commas) const {
  const double numbers = static_cast<double>(plain_ + point_ + comma_ + either_);
  if (count() > 0 && numbers >= kMost * static_cast<double>(count())) return number_format(commas);
  return {.kind = ColumnKind::kCategory};
}

CellFormat ColumnSummary::format(bool commas, std::string& why) const {
  const double most = kMost * static_cast<double>(count());
  if (count() == 0) {
    why = "has no values";
    return {.kind = ColumnKind::kConstant};
  }
  if (distinct() == 1 && missing_ == 0) {
    why = "has one value";
    return {.kind = ColumnKind::kConstant};
  }
  if (booleans_ == count()) return {.kind = ColumnKind::kBoolean};
  if (static_cast<double>(plain_ + point_ + comma_ + either_) >= most) {
    // A text among a few whole numbers that come again and again is a further code: of cylinders
    // "4", "6" and "rotary".
    const bool codes = whole_ == plain_ && point_ + comma_ + either_ == 0 && plain_ < count() &&
                       distinct() <= kFewClasses && 5 * distinct() <= count();
    if (codes) return {.kind = ColumnKind::kCategory};
    if (compact_dates_ == count() && count() >= kEnoughCells) return {.kind = ColumnKind::kDate};
    if (counts_rows()) why = "counts the rows";
    if (why.empty() && named_id()) why = "is a different number in every row";
    if (!why.empty()) return {.kind = ColumnKind::kIdentifier};
    return are_codes() ? text_format(why) : number_format(commas);
  }
  if (static_cast<double>(dates_) >= most) {
    CellFormat format{.kind = ColumnKind::kDate};
    if (day_first_ > month_first_) format.order = DateOrder::kDayFirst;
    return format;
  }
  return text_format(why);
}

CellFormat ColumnSummary::text_format(std::string& why) const {
  const bool all_differ = told_apart_ >= kEnoughCells && distinct() == told_apart_;
  const bool many_words = words_ > 3 * count();
  if (all_differ && !many_words) {
    why = "is a different text in every row";
    return {.kind = ColumnKind::kIdentifier};
  }
  if (told_apart_ >= kEnoughCells && (all_differ || 2 * distinct() >= told_apart_)) {
    if (many_words) return {.kind = ColumnKind::kText};
    why = "has too many different short texts";
    return {.kind = ColumnKind::kIdentifier};
  }
  return {.kind = ColumnKind::kCategory};
}

}  // namespace fcp
