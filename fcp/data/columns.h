// Rows of a table given column by column, as the features that a network was trained on.
//
// Numbers become features as they are; where a column is not one of numbers (categories, dates,
// booleans) a number is read like its shortest text. What a cell of a file would become, the same
// text here does.
//
// Tested by tests/data/columns_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/csv.h"

namespace fcp {

// The cells of one column, row by row: numbers, of which NaN is a missing value, or texts.
struct ColumnCells {
  std::span<const double> numbers = {};
  std::function<const std::string*(size_t row)> text = {};  // null: the cell is not there
};

// What is known of cells besides the features that they became.
struct CellNotes {
  std::vector<std::string> flags = {};  // by row: what no training row had (table_schema.h)
  std::vector<size_t> missing = {};     // by column: cells without a value
  std::vector<size_t> unknown = {};     // by column: categories that the encoding does not know
};

// The features of all rows at `features`, row by row, encoding.feature_count() each. `cells`: one
// entry per column of the encoding. A text that stands for no value is missing; a category that is
// not known is read as in a CSV file. An Error names the row, as row_name calls it, and the column.
CellNotes encode_columns(const CsvEncoding& encoding, std::span<const ColumnCells> cells,
                         size_t rows, const std::function<std::string(size_t)>& row_name,
                         float* features);

// The shortest text of a number that reads back as the same number; of NaN none.
std::string cell_text(double value);

// Whether a missing number is a legal input of the network: it becomes NaN, which the network
// takes as a signal of its own.
bool accepts_missing(const CsvEncoding& encoding);

// A CsvEncoding as text (JSON) and back, so that a network can carry how its columns are to be
// read. Tested by tests/data/columns_test.cc.

// The key under which training keeps the text in the network's metadata.
constexpr char kEncodingKey[] = "fcp.columns";

// And the key of the names of its targets, a JSON list.
constexpr char kTargetsKey[] = "fcp.targets";

// And the key of what its answers are beside, where they are doubles; then targets are read
// unrounded (fcp/training/training_data.h).
constexpr char kTargetOffsetKey[] = "fcp.target_offset";

std::string encoding_text(const CsvEncoding& encoding);

// An Error where the text is damaged.
CsvEncoding parse_encoding(const std::string& text);

}  // namespace fcp
