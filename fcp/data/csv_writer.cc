#include "fcp/data/csv_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/data/number.h"

namespace fcp {

namespace {

constexpr size_t kFlushSize = size_t{1} << 16;
constexpr size_t kShareRows = 2048;  // that a thread writes at a time

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

void CsvText::separate() {
  if (cells_in_row_++ > 0) text_ += ',';
}

void CsvText::cell(float value) {
  separate();
  char text[kNumberLength];
  text_.append(text, write_number(value, text));
}

void CsvText::cell(double value) {
  separate();
  char text[kNumberLength];
  text_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
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

void CsvText::list(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : "|") + text;
  cell(std::string_view(joined));
}

void CsvText::end_row() {
  if (cells_in_row_ != columns_) {
    fail(name_, ": a row of ", cells_in_row_, " cells, expected ", columns_);
  }
  text_ += '\n';
  cells_in_row_ = 0;
}

CsvWriter::CsvWriter(const std::string& path, const std::vector<std::string>& columns,
                     size_t threads)
    : file_(check_csv_path(path)),
      columns_(columns.size()),
      threads_(threads > 0 ? threads : usual_threads()),
      text_(columns_, file_.path()) {
  for (const std::string& column : columns) cell(std::string_view(column));
  end_row();
}

void CsvWriter::end_row() {
  text_.end_row();
  if (text_.text().size() >= kFlushSize) flush();
}

void CsvWriter::rows(size_t count, const WriteRow& write) {
  flush();
  const size_t together = std::max<size_t>(1, threads_) * kShareRows;
  while (shares_.size() < together / kShareRows) shares_.emplace_back(columns_, file_.path());
  for (size_t begin = 0; begin < count; begin += together) {
    const size_t end = std::min(count, begin + together);
    const size_t shares = (end - begin + kShareRows - 1) / kShareRows;
    parallel_rows(shares, 1, threads_, [&](size_t first, size_t last) {
      for (size_t share = first; share < last; ++share) {
        const size_t from = begin + share * kShareRows;
        for (size_t row = from; row < std::min(end, from + kShareRows); ++row) {
          write(row, shares_[share]);
          shares_[share].end_row();
        }
      }
    });
    for (size_t share = 0; share < shares; ++share) {
      file_.write(shares_[share].text());
      shares_[share].clear();
    }
  }
}

void CsvWriter::flush() {
  file_.write(text_.text());
  text_.clear();
}

void CsvWriter::close() {
  flush();
  file_.commit();
}

void write_csv(const std::string& path, const DataSet& set) {
  std::vector<std::string> columns = set.columns;
  columns.insert(columns.end(), set.targets.begin(), set.targets.end());
  CsvWriter writer(path, columns);
  writer.rows(set.x.rows(), [&](size_t row, CsvText& text) {
    for (const float value : set.x.row(row)) text.cell(value);
    for (const float value : set.y.row(row)) text.cell(value);
  });
  writer.close();
}

namespace {

constexpr size_t kFlushText = size_t{1} << 16;

std::string json_of(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

JsonRows::JsonRows(const std::string& path, const std::vector<std::string>& columns) : file_(path) {
  for (const std::string& column : columns) names_.push_back(json_of(column));
}

void JsonRows::begin_cell() {
  if (cells_in_row_ == names_.size()) {
    fail(file_.path(), ": a row of more cells than its ", names_.size(), " columns");
  }
  text_ += cells_in_row_ > 0 ? ", " : any_ ? ",\n {" : "\n {";
  text_ += names_[cells_in_row_++];
  text_ += ": ";
}

void JsonRows::cell(float value) { number_cell(value, number_text(value)); }

void JsonRows::cell(double value) {
  char text[kNumberLength];
  number_cell(value, {text, std::to_chars(text, text + sizeof text, value).ptr});
}

void JsonRows::number_cell(double value, const std::string& text) {
  begin_cell();
  text_ += std::isnan(value)   ? "null"
           : std::isinf(value) ? (value > 0 ? "\"inf\"" : "\"-inf\"")
                               : text;
}

void JsonRows::cell(int64_t value) {
  begin_cell();
  text_ += std::to_string(value);
}

void JsonRows::cell(std::string_view text) {
  begin_cell();
  text_ += json_of(text);
}

void JsonRows::list(const std::vector<std::string>& texts) {
  begin_cell();
  text_ += '[';
  for (size_t i = 0; i < texts.size(); ++i) text_ += (i > 0 ? ", " : "") + json_of(texts[i]);
  text_ += ']';
}

void JsonRows::end_row() {
  if (cells_in_row_ != names_.size()) {
    fail(file_.path(), ": a row of ", cells_in_row_, " cells, expected ", names_.size());
  }
  text_ += '}';
  cells_in_row_ = 0;
  any_ = true;
  if (text_.size() >= kFlushText) flush();
}

void JsonRows::flush() {
  file_.write(text_);
  text_.clear();
}

void JsonRows::close() {
  text_ += "\n]\n";
  flush();
  file_.commit();
}

struct TextFile::Packer {
  z_stream stream{};

  explicit Packer(const std::string& path) {
    constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      fail(path, ": zlib cannot pack it");
    }
  }
  ~Packer() { deflateEnd(&stream); }
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
};

TextFile::TextFile(const std::string& path) : file_(path) {
  if (path.ends_with(".gz")) packer_ = std::make_unique<Packer>(path);
}

TextFile::~TextFile() = default;

void TextFile::pack(std::string_view text, bool last) {
  std::array<char, size_t{1} << 16> out;
  z_stream& stream = packer_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    file_.write({out.data(), out.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

void TextFile::write(std::string_view text) {
  constexpr size_t kMostPacked = size_t{1} << 30;  // that zlib takes at once
  if (!packer_) return file_.write(text);
  for (; !text.empty(); text.remove_prefix(std::min(kMostPacked, text.size()))) {
    pack(text.substr(0, kMostPacked), false);
  }
}

void TextFile::commit() {
  if (packer_) pack({}, true);
  file_.commit();
}

}  // namespace fcp
