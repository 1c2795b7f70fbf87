#include "fcp/data/csv_cells.h"

#include <algorithm>
#include <cstring>

#include "fcp/base/error.h"

namespace fcp {
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
