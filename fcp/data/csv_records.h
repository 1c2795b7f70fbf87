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
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fcp/data/bytes.h"
#include "fcp/data/csv_cells.h"

namespace fcp {

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
