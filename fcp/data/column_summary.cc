#include "fcp/data/column_summary.h"

#include <algorithm>
#include <cmath>

#include "fcp/data/csv_head.h"
#include "fcp/data/file_witness.h"
#include "fcp/data/number.h"

namespace fcp {
namespace {

constexpr double kMost = 0.9;        // of the cells: the rest are mistakes
constexpr size_t kFewClasses = 10;   // whole numbers that may be classes
constexpr size_t kEnoughCells = 10;  // before all cells that differ mean anything

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
  if (parse_number(cell, value)) {
    ++plain_;
    if (std::floor(value) == value) ++whole_;
    if (plain_ > 1 && value == last_ + 1) ++steps_;
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
  return missing_ == 0 && whole_ == cells_ && cells_ >= kEnoughCells && steps_ + 1 == cells_;
}

bool ColumnSummary::named_id() const {
  const bool named = name_ == "id" || name_ == "ID" || name_ == "Id" || name_.ends_with("_id") ||
                     name_.ends_with("_ID") || name_.ends_with("Id");
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
    if (counts_rows()) why = "counts the rows";
    if (why.empty() && named_id()) why = "is a different number in every row";
    if (!why.empty()) return {.kind = ColumnKind::kIdentifier};
    return number_format(commas);
  }
  if (static_cast<double>(dates_) >= most) {
    CellFormat format{.kind = ColumnKind::kDate};
    if (day_first_ > month_first_) format.order = DateOrder::kDayFirst;
    return format;
  }
  const bool all_differ = told_apart_ >= kEnoughCells && distinct() == told_apart_;
  const bool many_words = words_ > 3 * count();
  if (all_differ && !many_words) {
    why = "is a different text in every row";
    return {.kind = ColumnKind::kIdentifier};
  }
  if (told_apart_ >= kEnoughCells && (all_differ || 2 * distinct() >= told_apart_)) {
    why = "is free text";
    return {.kind = ColumnKind::kText};
  }
  return {.kind = ColumnKind::kCategory};
}

}  // namespace fcp
