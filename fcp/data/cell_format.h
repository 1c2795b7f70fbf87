// What the cells of a table's column are, and the number that a cell becomes.
//
//   number             1.5, -2e3
//   number:point       1,234.5, also with $ € £ ¥, %, or brackets for a minus
//   number:comma       1.234,5, the same
//   date, date:dmy     fcp/data/date.h: month before day where both could be meant, or day first
//   boolean            true and false, yes and no, in any case: 1 and 0
//   category           any text: one feature per category
//   text               any text: one feature per frequent word (fcp/data/words.h)
//
// and of columns that are not read: constant, identifier. Tested by
// tests/data/cell_format_test.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fcp/data/date.h"

namespace fcp {

enum class ColumnKind { kNumber, kCategory, kDate, kBoolean, kConstant, kIdentifier, kText };
enum class NumberStyle { kPlain, kPoint, kComma };

struct CellFormat {
  ColumnKind kind = ColumnKind::kNumber;
  NumberStyle style = NumberStyle::kPlain;
  DateOrder order = DateOrder::kMonthFirst;
  friend bool operator==(const CellFormat&, const CellFormat&) = default;
};

// As in the list above.
std::string format_text(const CellFormat& format);
// None where there is no such format.
std::optional<CellFormat> parse_format(std::string_view text);

// Whether a column of this kind gives features.
bool is_read(ColumnKind kind);

// "a number", "a date": for messages.
std::string expected_text(ColumnKind kind);

// A number written with separators of thousands, a currency or a percent sign. The separator of
// decimals is '.' or ',' by the style; the other one, spaces and apostrophes may separate groups of
// three digits. "12 %" is 12.
bool parse_styled_number(std::string_view text, NumberStyle style, double& value);

bool parse_boolean(std::string_view text, double& value);

// The number of a cell of a number, date or boolean column; false where the cell is none.
bool parse_cell(std::string_view text, const CellFormat& format, double& value);

}  // namespace fcp
