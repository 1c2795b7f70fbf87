// The rows of a CSV file as text cells, in blocks of 1 MiB: memory grows with the longest row, not
// with the file. RFC 4180 quoting (separators, doubled quotes and newlines inside quotes), LF or
// CRLF line ends, UTF-8 byte order mark skipped; lines with nothing on them are passed over, up to
// a million in a row. A NUL byte, as in UTF-16 without a mark, is an Error, and so is a file of
// another kind of table (Parquet, Arrow, a workbook).
//
// Rows are split one by one, or handed out as text, many at a time, for threads to split.
//
// Tested by tests/data/csv_records_test.cc.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fcp/data/bytes.h"

namespace fcp {

// The cells of one row of a CSV file, from its text: RFC 4180 quoting. Several threads each split
// rows of their own. Tested by tests/data/csv_records_test.cc.

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

class CsvRecords {
 public:
  // separator 0: whichever of , ; tab | comes most often in the first line outside quotes (the
  // earlier in this list where two come equally often, ',' where none comes).
  explicit CsvRecords(std::unique_ptr<ByteSource> bytes, char separator = 0);

  // Moves to the next row; false at the end.
  bool next();
  // The current row, its cells, and the line on which it begins. Valid until next().
  const CsvCells& row() const { return row_; }
  const std::vector<std::string_view>& cells() const { return row_.cells(); }
  size_t line() const { return row_.line(); }

  // The next rows as text, not split: as many as are in memory together, `count` at most, none at
  // the end. Valid until the next call. What is wrong behind them is said by the next call.
  void next_lines(size_t count, std::vector<CsvLine>& lines);

  // Cells that are to be empty from the next row on; texts of next_lines() have them still.
  void set_missing(std::vector<std::string> marks) { missing_ = std::move(marks); }

  char separator() const { return separator_; }
  const std::string& name() const { return bytes_->name(); }
  void rewind();

 private:
  bool fill();
  void skip_mark();
  void detect_separator();
  size_t find_newline(size_t from);
  size_t find_record_end();
  bool find_line(CsvLine& found);

  std::unique_ptr<ByteSource> bytes_;
  char separator_;
  std::vector<std::string> missing_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of the bytes not yet used
  size_t end_ = 0;    // of the bytes read
  bool at_end_ = false;
  bool held_ = false;     // what is in memory stays where it is
  bool cut_off_ = false;  // and ends within a row
  size_t next_line_ = 1;
  size_t empty_lines_ = 0;  // in a row
  CsvCells row_;
  std::exception_ptr broken_;  // what the next call says
};

}  // namespace fcp
