#include "fcp/base/text_table.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "fcp/base/number_text.h"
#include "fcp/base/printable.h"

namespace fcp {
namespace {

constexpr std::string_view kColumnGap = "  ";
constexpr size_t kLongestRule = 100;  // a cell may be any text, and the rule need not follow it

bool begins_like_a_number(std::string_view cell) {
  constexpr std::array<std::string_view, 7> kStarts = {"−", "∞", "–", "±", "-", "+", "."};
  if (cell.front() >= '0' && cell.front() <= '9') return true;
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return cell.starts_with(start); });
}

std::string padded(const std::string& cell, size_t width, bool right) {
  const std::string blanks(width - display_width(cell), ' ');
  return right ? blanks + cell : cell + blanks;
}

void append_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

}  // namespace

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() > headers_.size()) throw std::invalid_argument("a row wider than its table");
  cells.resize(headers_.size());
  for (std::string& cell : cells) cell = printable(cell);  // names may come from anywhere
  rows_.push_back(std::move(cells));
}

void Table::add_gap() { rows_.emplace_back(); }

bool Table::is_numeric(size_t column) const {
  bool any = false;
  for (const auto& row : rows_) {
    if (row.empty() || row[column].empty()) continue;
    if (!begins_like_a_number(row[column])) return false;
    any = true;
  }
  return any;
}

size_t Table::width(size_t column) const {
  size_t widest = display_width(headers_[column]);
  for (const auto& row : rows_) {
    if (!row.empty()) widest = std::max(widest, display_width(row[column]));
  }
  return widest;
}

std::string Table::text(size_t indent) const {
  const std::string margin(indent, ' ');
  std::vector<size_t> widths;
  std::vector<bool> numeric;
  size_t total = 0;
  for (size_t column = 0; column < headers_.size(); ++column) {
    widths.push_back(width(column));
    numeric.push_back(is_numeric(column));
    total += widths.back() + (column > 0 ? kColumnGap.size() : 0);
  }
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line = margin;
    for (size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) line += kColumnGap;
      line += padded(cells[column], widths[column], numeric[column]);
    }
    return line;
  };

  std::string text;
  const auto named = [](const std::string& header) { return !header.empty(); };
  if (std::any_of(headers_.begin(), headers_.end(), named)) {
    append_line(text, line_of(headers_));
    std::string rule = margin;
    for (size_t i = 0; i < std::min(total, kLongestRule); ++i) rule += "─";
    append_line(text, rule);
  }
  for (const auto& row : rows_) append_line(text, line_of(row));
  return text;
}

std::ostream& operator<<(std::ostream& out, const Table& table) { return out << table.text(); }

}  // namespace fcp
