#include "fcp/data/csv_head.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>

#include "fcp/base/error.h"
#include "fcp/base/text.h"
#include "fcp/data/number.h"

namespace fcp {
namespace {

constexpr size_t kNamesInMessage = 12;

std::vector<std::string> trimmed_cells(const CsvRecords& records) {
  std::vector<std::string> cells;
  for (const std::string_view cell : records.cells()) cells.push_back(trimmed(cell));
  return cells;
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t comma = list.find(',', begin);
    parts.push_back(trimmed(std::string_view(list).substr(begin, comma - begin)));
    if (comma == std::string::npos) return parts;
    begin = comma + 1;
  }
}

bool is_number(std::string_view cell) {
  double value;
  return parse_number(cell, value);
}

bool is_text(std::string_view cell) { return !is_missing(cell) && !is_number(cell); }

// The rule stated in csv.h.
bool looks_like_header(const std::vector<std::string>& first,
                       const std::vector<std::string>& second) {
  if (std::none_of(first.begin(), first.end(), is_text)) return false;
  if (std::none_of(first.begin(), first.end(), is_number)) return true;
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (is_text(first[i]) && !is_text(second[i])) return true;
  }
  return false;
}

}  // namespace

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string shown(text.substr(0, kLongest));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return "'" + shown + (text.size() > kLongest ? "…'" : "'");
}

bool CsvHead::has(const std::string& name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string CsvHead::all_columns() const {
  if (!header) return concat("there is no header, columns are 0 to ", names.size() - 1);
  std::string text = "the columns are ";
  for (size_t i = 0; i < std::min(names.size(), kNamesInMessage); ++i) {
    text += (i > 0 ? ", " : "") + in_quotes(names[i]);
  }
  if (names.size() > kNamesInMessage) text += concat(" … (", names.size(), " in all)");
  return text;
}

std::string CsvHead::hint(const std::string& name) const {
  const std::string near = header ? nearest_word(name, names) : "";
  if (!near.empty()) return concat("; did you mean ", in_quotes(near), '?');
  if (std::find(first.begin(), first.end(), name) != first.end()) {
    return "; the first row has that name: is it a header (--header yes)?";
  }
  if (names.size() > 1) return "";
  const std::string parted = separator == '\t' ? "tabs" : in_quotes(std::string(1, separator));
  return concat("; between ", parted, " there is one column: is it another --separator?");
}

std::string CsvHead::column_text(size_t cell) const {
  return header ? in_quotes(names[cell]) : names[cell];
}

size_t CsvHead::find(const std::string& name, const std::string& role) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (header && found != names.end()) {
    if (std::find(found + 1, names.end(), name) != names.end()) {
      fail(file, ": two columns are called ", in_quotes(name));
    }
    return static_cast<size_t>(found - names.begin());
  }
  int64_t index = 0;
  const int64_t width = static_cast<int64_t>(names.size());
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_index = error == std::errc() && stop == name.data() + name.size();
  if (!is_index || index < -width || index >= width) {
    fail(file, ": no column ", in_quotes(name), " (", role, "); ", all_columns(), hint(name));
  }
  return static_cast<size_t>(index < 0 ? index + width : index);
}

std::vector<size_t> CsvHead::find_list(const std::string& list, const std::string& role) const {
  std::vector<size_t> cells;
  const bool one_name = header && has(list);  // a name may contain a comma itself
  for (const std::string& name : one_name ? std::vector{list} : split_list(list)) {
    const size_t cell = find(name, role);
    if (std::find(cells.begin(), cells.end(), cell) != cells.end()) {
      fail(file, ": ", role, " column ", in_quotes(names[cell]), " is named twice");
    }
    cells.push_back(cell);
  }
  return cells;
}

CsvHead read_head(CsvRecords& records, CsvHeader wanted, bool expected) {
  if (!records.next()) fail(records.name(), ": the file is empty");
  CsvHead head{records.name(), false, trimmed_cells(records)};
  const bool more = records.next();
  const std::vector<std::string> second = more ? trimmed_cells(records) : head.names;
  head.header = wanted == CsvHeader::kYes ||
                (wanted == CsvHeader::kAuto && (expected || looks_like_header(head.names, second)));
  if (head.header && !more) fail(records.name(), ": there are no rows below the header");
  head.separator = records.separator();
  if (!head.header) head.first = head.names;
  for (size_t i = 0; !head.header && i < head.names.size(); ++i) head.names[i] = std::to_string(i);
  return head;
}

void check_names_differ(const CsvHead& head) {
  for (size_t i = 0; head.header && i < head.names.size(); ++i) {
    const auto found = std::find(head.names.begin(), head.names.end(), head.names[i]);
    const auto before = static_cast<size_t>(found - head.names.begin());
    if (before == i || head.names[i].empty()) continue;
    fail(head.file, ": two columns are called ", in_quotes(head.names[i]), ", columns ", before,
         " and ", i, " (from 0); rename one of them");
  }
}

std::vector<std::string> make_names_unique(CsvHead& head) {
  std::vector<std::string> changes;
  std::set<std::string> taken;
  for (size_t i = 0; i < head.names.size(); ++i) {
    const std::string original = head.names[i];
    std::string name = original.empty() ? concat("column ", i) : original;
    for (size_t number = 2; !taken.insert(name).second; ++number) {
      name = concat(original, " (", number, ")");
    }
    if (name == original) continue;
    changes.push_back(original.empty()
                          ? concat("column ", i, " has no name and is called '", name, "'")
                          : concat("another column is called ", in_quotes(original), "; column ", i,
                                   " (from 0) becomes ", in_quotes(name)));
    head.names[i] = name;
  }
  return changes;
}

}  // namespace fcp
