// What the columns of a table say against an honest evaluation: a column that tells the target
// alone (a leak), rows that are alike where a column has the same value (a random split then tests
// on patients it has learned), rows in order of time.
//
// Skill is the share of the target's spread that is explained, each row by other rows alone: by
// those of the same value, or by the four next to it in the order of a column of numbers. The
// target is taken by ranks, of classes as one 0 or 1 each. A column looks like a group where its
// own value explains a tenth more than the values next to it do: age is a number, a patient's
// number is not.
//
// A warning chooses nothing, so all rows are looked at; the first 50,000. Cost: a sort of each
// column. Tested by tests/fit/column_warnings_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/table_schema.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

struct ColumnCheck {
  bool groups = true;  // look for groups, which nothing keeps together
  bool time = true;    // look for an order of time, by which nothing splits
  bool classes = false;
};

// One line each. y [rows, K]: the target of the rows that are read, from the first file on. Nothing
// is found in tables of fewer than 100 rows, of several targets the first is looked at, and no
// schema is no table.
std::vector<std::string> column_warnings(const DataOptions& data, const TableSchema* schema,
                                         const Array& y, const ColumnCheck& check);

}  // namespace fcp
