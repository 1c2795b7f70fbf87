#include "fcp/data/csv_writer.h"

#include <charconv>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/number.h"

namespace fcp {

namespace {

constexpr size_t kFlushSize = size_t{1} << 16;

}  // namespace

const std::string& check_csv_path(const std::string& path) {
  for (const auto& [ending, writer] :
       {std::pair(".parquet", "to_parquet"), std::pair(".feather", "to_feather"),
        std::pair(".arrow", "to_feather"), std::pair(".xlsx", "to_excel")}) {
    if (!path.ends_with(ending)) continue;
    fail(path, ": fcp does not write ", ending,
         " files; write CSV and convert it, as by pandas: ", "pandas.read_csv(…).", writer, "(…)");
  }
  return path;
}

CsvWriter::CsvWriter(const std::string& path, const std::vector<std::string>& columns)
    : file_(check_csv_path(path)), columns_(columns.size()) {
  for (const std::string& column : columns) cell(std::string_view(column));
  end_row();
}

void CsvWriter::separate() {
  if (cells_in_row_++ > 0) buffer_ += ',';
}

void CsvWriter::cell(float value) {
  separate();
  char text[kNumberLength];
  buffer_.append(text, write_number(value, text));
}

void CsvWriter::cell(int64_t value) {
  separate();
  char text[24];
  buffer_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void CsvWriter::cell(std::string_view text) {
  separate();
  // An empty line would be no row at all.
  const bool blank_line = text.empty() && columns_ == 1;
  if (!blank_line && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    buffer_ += text;
    return;
  }
  buffer_ += '"';
  for (const char c : text) {
    if (c == '"') buffer_ += '"';
    buffer_ += c;
  }
  buffer_ += '"';
}

void CsvWriter::end_row() {
  if (cells_in_row_ != columns_) {
    fail(file_.path(), ": a row of ", cells_in_row_, " cells, expected ", columns_);
  }
  buffer_ += '\n';
  cells_in_row_ = 0;
  flush_if_full();
}

void CsvWriter::row(std::span<const float> values) {
  for (const float value : values) cell(value);
  end_row();
}

void CsvWriter::flush_if_full() {
  if (buffer_.size() < kFlushSize) return;
  file_.write(buffer_);
  buffer_.clear();
}

void CsvWriter::close() {
  file_.write(buffer_);
  buffer_.clear();
  file_.commit();
}

void write_csv(const std::string& path, const DataSet& set) {
  std::vector<std::string> columns = set.columns;
  columns.insert(columns.end(), set.targets.begin(), set.targets.end());
  CsvWriter writer(path, columns);
  for (size_t i = 0; i < set.x.rows(); ++i) {
    for (const float value : set.x.row(i)) writer.cell(value);
    for (const float value : set.y.row(i)) writer.cell(value);
    writer.end_row();
  }
  writer.close();
}

}  // namespace fcp
