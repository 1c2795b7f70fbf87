// Writes a CSV file row by row. Numbers are the shortest text that reads back as the same float32,
// infinities `inf` and `-inf`; text is quoted where it must be. A writer that is not closed leaves
// no file behind, and a failed write (disk full) is an Error that names the file. "-" is standard
// output.
//
// Tested by tests/data/csv_writer_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/base/output_file.h"
#include "fcp/data/array.h"

namespace fcp {

// The path; an Error where its ending is that of another kind of table, as .parquet.
const std::string& check_csv_path(const std::string& path);

class CsvWriter {
 public:
  CsvWriter(const std::string& path, const std::vector<std::string>& columns);

  // One row of numbers, one for each column.
  void row(std::span<const float> values);

  // Or cell by cell.
  void cell(float value);
  void cell(int64_t value);
  void cell(std::string_view text);
  void end_row();

  void close();

 private:
  void separate();
  void flush_if_full();

  OutputFile file_;
  size_t columns_;
  size_t cells_in_row_ = 0;
  std::string buffer_;
};

// The whole set, features first, then targets.
void write_csv(const std::string& path, const DataSet& set);

}  // namespace fcp
