// Rows of a CSV file as text. Numbers are the shortest text that reads back as the same float32,
// infinities `inf` and `-inf`; text is quoted where it must be. Several threads each write a text
// of their own. Tested by tests/data/csv_writer_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace fcp {

class CsvText {
 public:
  // `name` of the file, for errors.
  CsvText(size_t columns, std::string name) : columns_(columns), name_(std::move(name)) {}

  void cell(float value);
  void cell(int64_t value);
  void cell(std::string_view text);
  void end_row();

  const std::string& text() const { return text_; }
  void clear() { text_.clear(); }

 private:
  void separate();

  size_t columns_;
  std::string name_;
  size_t cells_in_row_ = 0;
  std::string text_;
};

}  // namespace fcp
