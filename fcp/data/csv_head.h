// The first row of a CSV file: whether it is a header, what the columns are called, and which one a
// user means. Tested by tests/data/csv_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/data/csv_records.h"

namespace fcp {

enum class CsvHeader { kAuto, kYes, kNo };

struct CsvHead {
  std::string file;  // for messages
  bool header = false;
  std::vector<std::string> names{};  // of all columns; positions as text without a header
  std::vector<std::string> first{};  // without a header the cells of the first row
  char separator = ',';

  bool has(const std::string& name) const;
  // The column of this name or 0-based index (negative: from the end). An Error names the role that
  // the column was to have.
  size_t find(const std::string& name, const std::string& role) const;
  // Several, with commas between, unless the whole is one name; an Error where one comes twice.
  std::vector<size_t> find_list(const std::string& list, const std::string& role) const;

  // "; did you mean 'price'?", or what else may be wrong where there is no column of this name.
  std::string hint(const std::string& name) const;
  std::string all_columns() const;             // for messages
  std::string column_text(size_t cell) const;  // its name in quotes, or its position
};

// Reads the first rows of a file that stands at its beginning, by the rule of fcp/data/csv.h;
// `expected`: kAuto means a header. The file must be rewound afterwards.
CsvHead read_head(CsvRecords& records, CsvHeader wanted, bool expected = false);

// An Error where two columns of a header have one name that is not empty.
void check_names_differ(const CsvHead& head);

// Empty names become "column 4", counted from 0, and names that come again get a number, as they
// did in files that earlier versions trained on: a, a (2), a (3). Returns a line for each that was
// changed. The same file gives the same names always.
std::vector<std::string> make_names_unique(CsvHead& head);

// A cell as a message shows it: one line, not too long.
std::string in_quotes(std::string_view text);

// Without spaces and tabs around it.
std::string trimmed(std::string_view text);

}  // namespace fcp
