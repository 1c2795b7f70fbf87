#include "fcp/data/csv_records.h"

#include <algorithm>
#include <cstring>

#include "fcp/base/error.h"

namespace fcp {

namespace {

constexpr size_t kReadSize = size_t{1} << 20;
constexpr size_t kLongestRow = size_t{1} << 26;
constexpr size_t kMostEmptyLines = 1000000;
constexpr size_t kNowhere = static_cast<size_t>(-1);

struct OtherTable {
  std::string_view mark;
  const char* kind;
  const char* reader;  // of pandas
};

// Files of other programs that would be read as text: known by their first bytes.
void refuse_other_tables(std::string_view start, const std::string& name) {
  constexpr OtherTable kOthers[] = {{"PAR1", "a Parquet file", "read_parquet"},
                                    {"ARROW1", "an Arrow file", "read_feather"},
                                    {"PK\x03\x04", "a workbook", "read_excel"}};
  for (const OtherTable& other : kOthers) {
    if (!start.starts_with(other.mark)) continue;
    fail(name, ": is ", other.kind, ", which fcp does not read; write it as CSV first, as by ",
         "pandas: pandas.", other.reader, "(…).to_csv(…, index=False)");
  }
}

}  // namespace

CsvRecords::CsvRecords(std::unique_ptr<ByteSource> bytes, char separator)
    : bytes_(std::move(bytes)), separator_(separator), buffer_(kReadSize) {
  skip_mark();
  if (separator_ == 0) detect_separator();
}

// Reads on behind the bytes not yet used, which move to the front; false at the end of the file.
bool CsvRecords::fill() {
  if (at_end_) return false;
  if (held_) {
    cut_off_ = true;
    return false;
  }
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    if (end_ >= kLongestRow) {
      fail(name(), ": line ", next_line_, ": a row of more than ", kLongestRow >> 20,
           " MiB; is a quote not closed?");
    }
    buffer_.resize(2 * buffer_.size());
  }
  const size_t got = bytes_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  at_end_ = got == 0;
  return !at_end_;
}

void CsvRecords::skip_mark() {
  fill();
  refuse_other_tables({buffer_.data(), end_}, name());
  const std::string_view start(buffer_.data(), std::min<size_t>(end_, 3));
  if (start == "\xef\xbb\xbf") begin_ = 3;
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff")) {
    fail(name(), ": is UTF-16 text, expected UTF-8; say encoding utf-16 (--encoding utf-16)");
  }
}

void CsvRecords::detect_separator() {
  constexpr std::string_view kCandidates = ",;\t|";
  size_t counts[kCandidates.size()] = {};
  size_t at = begin_;
  while (at < end_ && (buffer_[at] == '\n' || buffer_[at] == '\r')) ++at;
  bool quoted = false;
  for (; at < end_ && (quoted || buffer_[at] != '\n'); ++at) {
    if (buffer_[at] == '"') quoted = !quoted;
    const size_t candidate = quoted ? std::string_view::npos : kCandidates.find(buffer_[at]);
    if (candidate != std::string_view::npos) ++counts[candidate];
  }
  separator_ = kCandidates[static_cast<size_t>(
      std::max_element(counts, counts + kCandidates.size()) - counts)];
}

void CsvRecords::rewind() {
  bytes_->rewind();
  begin_ = end_ = 0;
  at_end_ = false;
  broken_ = nullptr;
  next_line_ = 1;
  empty_lines_ = 0;
  skip_mark();
}

// The offset from begin_ of the first newline at or behind begin_ + from; kNowhere where the file
// ends before.
size_t CsvRecords::find_newline(size_t from) {
  while (true) {
    const char* start = buffer_.data() + begin_;
    const size_t available = end_ - begin_;
    if (from < available) {
      const void* found = std::memchr(start + from, '\n', available - from);
      if (found) return static_cast<size_t>(static_cast<const char*>(found) - start);
      from = available;
    }
    if (!fill()) return kNowhere;
  }
}

// The offset from begin_ of the newline that ends a row with quotes: the first one outside them. A
// quote opens only at the beginning of a cell; elsewhere it is a letter like any other.
size_t CsvRecords::find_record_end() {
  bool quoted = false, cell_begins = true, just_closed = false;
  for (size_t at = 0;; ++at) {
    if (begin_ + at == end_ && !fill()) {
      if (quoted && !cut_off_)
        fail(name(), ": line ", next_line_, ": a quote is opened and never closed");
      return kNowhere;
    }
    const char c = buffer_[begin_ + at];
    if (!quoted && c == '\n') return at;
    const bool opens = !quoted && c == '"' && (cell_begins || just_closed);  // doubled: opens again
    just_closed = quoted && c == '"';
    quoted = opens || (quoted && !just_closed);
    cell_begins = !quoted && c == separator_;
  }
}

// The text of the next row; false at the end of the file, or of what is held in memory.
bool CsvRecords::find_line(CsvLine& found) {
  while (true) {
    if (begin_ == end_ && !fill()) return false;
    size_t length = find_newline(0);
    const size_t searched = length == kNowhere ? end_ - begin_ : length;
    const bool quotes = std::memchr(buffer_.data() + begin_, '"', searched) != nullptr;
    if (quotes && !cut_off_) length = find_record_end();
    if (cut_off_) return false;
    const bool newline = length != kNowhere;
    if (!newline) length = end_ - begin_;

    const char* first = buffer_.data() + begin_;
    const char* last = first + length;
    found = {first, last, next_line_, quotes};
    next_line_ += 1 + (quotes ? static_cast<size_t>(std::count(first, last, '\n')) : 0);
    begin_ += length + (newline ? 1 : 0);
    if (last != first && last[-1] == '\r') --found.last;
    if (found.first != found.last) break;
    if (++empty_lines_ > kMostEmptyLines) {
      fail(name(), ": line ", found.line, ": more than ", kMostEmptyLines, " empty lines in a row");
    }
  }
  empty_lines_ = 0;
  return true;
}

bool CsvRecords::next() {
  if (broken_) std::rethrow_exception(broken_);
  CsvLine line;
  if (!find_line(line)) return false;
  row_.split(line, separator_, name());
  row_.blank(missing_);
  return true;
}

void CsvRecords::next_lines(size_t count, std::vector<CsvLine>& lines) {
  lines.clear();
  if (broken_) std::rethrow_exception(broken_);
  try {
    for (CsvLine line; lines.size() < count && find_line(line); held_ = true) {
      lines.push_back(line);
    }
  } catch (const Error&) {
    broken_ = std::current_exception();
  }
  held_ = cut_off_ = false;
  if (broken_ && lines.empty()) std::rethrow_exception(broken_);
}

namespace {

[[noreturn]] void fail_wide(const CsvLine& text, const std::string& name) {
  fail(name, ": line ", text.line, ": a row of more than ", kMostCells,
       " cells, expected fewer; wider tables are read from .npy");
}

}  // namespace

void CsvCells::split(const CsvLine& text, char separator, const std::string& name) {
  line_ = text.line;
  cells_.clear();
  if (std::memchr(text.first, 0, static_cast<size_t>(text.last - text.first)) != nullptr) {
    fail(name, ": line ", line_, ": holds a NUL byte, expected UTF-8 text; is it UTF-16?");
  }
  const bool long_text = static_cast<size_t>(text.last - text.first) >= kMostCells;
  if (text.quotes) {
    split_quoted(text.first, text.last, separator, name);
    if (cells_.size() > kMostCells) fail_wide(text, name);
  } else {
    const auto separators =
        long_text ? static_cast<size_t>(std::count(text.first, text.last, separator)) : 0;
    if (separators >= kMostCells) fail_wide(text, name);
    split_plain(text.first, text.last, separator);
  }
}

void CsvCells::blank(const std::vector<std::string>& marks) {
  if (marks.empty()) return;
  for (std::string_view& cell : cells_) {
    const size_t first = cell.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    const std::string_view text = cell.substr(first, cell.find_last_not_of(" \t") - first + 1);
    if (std::find(marks.begin(), marks.end(), text) != marks.end()) cell = {};
  }
}

void CsvCells::split_plain(const char* at, const char* last, char separator) {
  const char* cell = at;
  for (; at != last; ++at) {
    if (*at != separator) continue;
    cells_.emplace_back(cell, static_cast<size_t>(at - cell));
    cell = at + 1;
  }
  cells_.emplace_back(cell, static_cast<size_t>(last - cell));
}

void CsvCells::split_quoted(const char* at, const char* last, char separator,
                            const std::string& name) {
  unescaped_.clear();
  while (true) {
    if (at != last && *at == '"') {
      at = quoted_cell(at + 1, last);
      if (at != last && *at != separator) {
        fail(name, ": line ", line_, ": text follows the closing quote of column ",
             cells_.size() - 1, ", expected a separator");
      }
    } else {
      const char* end = std::find(at, last, separator);
      cells_.emplace_back(at, static_cast<size_t>(end - at));
      at = end;
    }
    if (at == last || cells_.size() > kMostCells) return;
    ++at;
  }
}

// A cell from behind its opening quote on; returns what follows the closing one.
const char* CsvCells::quoted_cell(const char* at, const char* last) {
  const char* end = std::find(at, last, '"');
  if (last - end < 2 || end[1] != '"') {
    cells_.emplace_back(at, static_cast<size_t>(end - at));
    return end == last ? last : end + 1;
  }
  std::string& text = unescaped_.emplace_back();
  while (last - end >= 2 && end[1] == '"') {
    text.append(at, end + 1);
    at = end + 2;
    end = std::find(at, last, '"');
  }
  text.append(at, end);
  cells_.emplace_back(text);
  return end == last ? last : end + 1;
}

}  // namespace fcp
