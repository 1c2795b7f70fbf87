// The rows of a CSV file as text cells, in blocks of 1 MiB: memory grows with the longest row, not
// with the file. RFC 4180 quoting (separators, doubled quotes and newlines inside quotes), LF or
// CRLF line ends, UTF-8 byte order mark skipped; lines with nothing on them are passed over, up to
// a million in a row. A NUL byte, as in UTF-16 without a mark, is an Error, and so is a file of
// another kind of table (Parquet, Arrow, a workbook).
//
// Tested by tests/data/csv_records_test.cc.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/data/bytes.h"

namespace fcp {

class CsvRecords {
 public:
  // separator 0: whichever of , ; tab | comes most often in the first line outside quotes (the
  // earlier in this list where two come equally often, ',' where none comes).
  explicit CsvRecords(std::unique_ptr<ByteSource> bytes, char separator = 0);

  // Moves to the next row; false at the end.
  bool next();
  // The cells of the current row, quotes removed. Valid until next().
  const std::vector<std::string_view>& cells() const { return cells_; }
  // The line on which the current row begins, as an editor counts: from 1.
  size_t line() const { return line_; }
  char separator() const { return separator_; }
  const std::string& name() const { return bytes_->name(); }
  void rewind();

 private:
  bool fill();
  void skip_mark();
  void detect_separator();
  size_t find_newline(size_t from);
  size_t find_record_end();
  void split_plain(const char* at, const char* last);
  void split_quoted(const char* at, const char* last);
  const char* quoted_cell(const char* at, const char* last);

  std::unique_ptr<ByteSource> bytes_;
  char separator_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of the bytes not yet used
  size_t end_ = 0;    // of the bytes read
  bool at_end_ = false;
  size_t line_ = 0;
  size_t next_line_ = 1;
  size_t empty_lines_ = 0;  // in a row
  std::vector<std::string_view> cells_;
  std::deque<std::string>
      unescaped_;  // cells with doubled quotes, which are no slice of the buffer
};

}  // namespace fcp
