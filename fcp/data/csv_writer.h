// Writes a CSV file row by row, or many rows on several threads: the bytes are the same. A writer
// that is not closed leaves no file behind, and a failed write (disk full) is an Error that names
// the file. "-" is standard output; a name that ends in .gz is packed.
//
// Tested by tests/data/csv_writer_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/base/output_file.h"
#include "fcp/data/array.h"

namespace fcp {

// A text file that is written whole or not at all (fcp/base/output_file.h), packed by gzip where
// its name ends in .gz. Tested by tests/data/csv_writer_test.cc.

class TextFile {
 public:
  explicit TextFile(const std::string& path);
  ~TextFile();

  void write(std::string_view text);
  void commit();

  const std::string& path() const { return file_.path(); }

 private:
  struct Packer;

  void pack(std::string_view text, bool last);

  OutputFile file_;
  std::unique_ptr<Packer> packer_;  // null: not packed
};

// The path; an Error where its ending is that of another kind of table, as .parquet.
const std::string& check_csv_path(const std::string& path);

// Rows of a CSV file as text. Numbers are the shortest text that reads back as the same float32, or
// double, infinities `inf` and `-inf`; text is quoted where it must be. Several threads each write
// a text of their own.
class CsvText {
 public:
  // `name` of the file, for errors.
  CsvText(size_t columns, std::string name) : columns_(columns), name_(std::move(name)) {}

  void cell(float value);
  void cell(double value);
  void cell(int64_t value);
  void cell(std::string_view text);
  void list(const std::vector<std::string>& texts);  // with '|' between
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

class CsvWriter {
 public:
  // threads: that rows() takes; 0: as many as usual (parallel.h).
  CsvWriter(const std::string& path, const std::vector<std::string>& columns, size_t threads = 0);

  // Row by row, cell by cell.
  void cell(float value) { text_.cell(value); }
  void cell(double value) { text_.cell(value); }
  void cell(int64_t value) { text_.cell(value); }
  void cell(std::string_view text) { text_.cell(text); }
  void end_row();

  // Or `count` rows, whose cells `write` adds, from several threads at once; they are written in
  // their order. Memory: some thousand rows of text for each thread.
  using WriteRow = std::function<void(size_t row, CsvText& text)>;
  void rows(size_t count, const WriteRow& write);

  void close();

 private:
  void flush();

  TextFile file_;
  size_t columns_;
  size_t threads_;
  CsvText text_;
  std::vector<CsvText> shares_;
};

// The whole set, features first, then targets.
void write_csv(const std::string& path, const DataSet& set);

// Writes rows as a JSON list of objects, cell by cell as CsvWriter does; numbers have the same
// digits, infinities are the texts "inf" and "-inf", and NaN is null. A writer that is not closed
// leaves no file behind. Tested by tests/data/csv_writer_test.cc.

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
