#include "fcp/data/csv_text.h"

#include <charconv>

#include "fcp/base/error.h"
#include "fcp/data/number.h"

namespace fcp {

void CsvText::separate() {
  if (cells_in_row_++ > 0) text_ += ',';
}

void CsvText::cell(float value) {
  separate();
  char text[kNumberLength];
  text_.append(text, write_number(value, text));
}

void CsvText::cell(int64_t value) {
  separate();
  char text[24];
  text_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void CsvText::cell(std::string_view text) {
  separate();
  // An empty line would be no row at all.
  const bool blank_line = text.empty() && columns_ == 1;
  if (!blank_line && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    text_ += text;
    return;
  }
  text_ += '"';
  for (const char c : text) {
    if (c == '"') text_ += '"';
    text_ += c;
  }
  text_ += '"';
}

void CsvText::end_row() {
  if (cells_in_row_ != columns_) {
    fail(name_, ": a row of ", cells_in_row_, " cells, expected ", columns_);
  }
  text_ += '\n';
  cells_in_row_ = 0;
}

}  // namespace fcp
