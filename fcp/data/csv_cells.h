// The cells of one row of a CSV file, from its text: RFC 4180 quoting. Several threads each split
// rows of their own. Tested by tests/data/csv_records_test.cc.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

// A cell takes hundreds of times the byte that it may have in the file, and far more than that in a
// packed one.
constexpr size_t kMostCells = size_t{1} << 18;

// The text of a row, without its line end.
struct CsvLine {
  const char* first = nullptr;
  const char* last = nullptr;
  size_t line = 0;      // on which it begins, as an editor counts: from 1
  bool quotes = false;  // whether there is one
};

class CsvCells {
 public:
  // `name` of the file, for errors: a NUL byte, text behind a closing quote, too many
  // cells.
  void split(const CsvLine& text, char separator, const std::string& name);
  // Empties the cells that are one of these texts, spaces around them aside.
  void blank(const std::vector<std::string>& marks);

  // Quotes removed. Valid until the next row is split, and as long as its text is.
  const std::vector<std::string_view>& cells() const { return cells_; }
  size_t line() const { return line_; }

 private:
  void split_plain(const char* at, const char* last, char separator);
  void split_quoted(const char* at, const char* last, char separator, const std::string& name);
  const char* quoted_cell(const char* at, const char* last);

  size_t line_ = 0;
  std::vector<std::string_view> cells_;
  std::deque<std::string> unescaped_;  // cells with doubled quotes, which are no slice of the text
};

}  // namespace fcp
