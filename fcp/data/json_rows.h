// Writes rows as a JSON list of objects, cell by cell as CsvWriter does; numbers have the same
// digits, infinities are the texts "inf" and "-inf", and NaN is null. A writer that is not closed
// leaves no file behind. Tested by tests/data/csv_writer_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/data/text_file.h"

namespace fcp {

class JsonRows {
 public:
  // "-" is standard output; a name that ends in .gz is packed.
  JsonRows(const std::string& path, const std::vector<std::string>& columns);

  void cell(float value);
  void cell(double value);
  void cell(int64_t value);
  void cell(std::string_view text);
  void list(const std::vector<std::string>& texts);
  void end_row();
  void close();

 private:
  void begin_cell();
  void number_cell(double value, const std::string& text);
  void flush();

  TextFile file_;
  std::vector<std::string> names_;  // quoted
  std::string text_ = "[";
  size_t cells_in_row_ = 0;
  bool any_ = false;
};

}  // namespace fcp
