// A table of text with aligned columns, for the terminal.
//
//   Table table({"method", "coverage"});
//   table.add_row({"nested", "90.3 %"});
//   std::cout << table;
//
// A column is aligned to the right where all its cells are numbers (they begin with a digit, a
// sign, ∞ or –), otherwise to the left. A table whose headers are all empty has no line of headers.
// Tested by tests/report/console_test.cc.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace fcp {

class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  // Missing cells are empty; more cells than headers are a mistake of the caller and throw
  // std::invalid_argument.
  void add_row(std::vector<std::string> cells);
  void add_gap();  // an empty line between sections

  // All lines, each ended by a newline and without blanks at its end.
  std::string text(size_t indent = 0) const;

 private:
  bool is_numeric(size_t column) const;
  size_t width(size_t column) const;

  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;  // a gap is a row without cells
};

std::ostream& operator<<(std::ostream& out, const Table& table);

}  // namespace fcp
