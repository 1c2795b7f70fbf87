// Numbers in text files.
//
// Idea: most cells are a few digits with perhaps a point. Their digits are gathered in a 64-bit
// integer m and their value is m · 10^e; where m ≤ 2^53 and |e| ≤ 22 both factors are exact
// doubles, so one multiplication or division is correctly rounded (Clinger, 1990). Everything else
// goes to std::from_chars, which is always exact.
//
// Tested by tests/data/number_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "fcp/data/date.h"

namespace fcp {

// Whether all of `text` (spaces around it allowed) is a number, and which: "1", "-2.5e3", "+.5",
// "inf", "-Infinity". Beyond the range of double the value is ±infinity or 0.
bool parse_number(std::string_view text, double& value);

// Whether the cell stands for "no value": empty, ?, NA, N/A, n/a, #N/A, <NA>, NaN, nan, -nan, NaT,
// null, NULL or None (spaces around it allowed).
bool is_missing(std::string_view text);

// The shortest decimal that reads back as the same float; "inf", "-inf", "nan".
std::string number_text(float value);

// The same written at `out`, where there is room for kNumberLength letters; returns its end.
constexpr size_t kNumberLength = 32;
char* write_number(float value, char* out);

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
// tests/data/number_test.cc.

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
