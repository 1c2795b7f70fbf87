#include "fcp/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "fcp/base/error.h"
#include "fcp/data/number.h"
#include "fcp/data/utf8.h"

namespace fcp {

namespace {

constexpr size_t kMostCategories = 1000;
constexpr size_t kNamesInMessage = 12;

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

std::vector<std::string> trimmed_cells(const CsvRecords& records) {
  std::vector<std::string> cells;
  for (const std::string_view cell : records.cells()) cells.push_back(trimmed(cell));
  return cells;
}

// A cell as a message shows it: one line, not too long.
std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string shown(text.substr(0, kLongest));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return "'" + shown + (text.size() > kLongest ? "…'" : "'");
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

std::vector<std::string> CsvEncoding::feature_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (categories[i].empty()) names.push_back(columns[i]);
    for (const std::string& category : categories[i]) names.push_back(columns[i] + "=" + category);
  }
  return names;
}

size_t CsvEncoding::feature_count() const {
  size_t count = 0;
  for (const auto& names : categories) count += std::max<size_t>(1, names.size());
  return count;
}

CsvReader::CsvReader(const std::string& path, const std::string& target, const CsvOptions& options)
    : records_(open_bytes(path), options.separator) {
  read_head(options.header, options.encoding);
  if (!target.empty()) find_targets(target);
  if (options.encoding) {
    encoding_ = *options.encoding;
    match_columns();
  } else {
    choose_columns(options);
    learn(options.impute, options.keep_missing);
  }
  feature_names_ = encoding_.feature_names();
  rewind();
}

void CsvReader::read_head(CsvHeader wanted, const std::optional<CsvEncoding>& encoding) {
  if (!records_.next()) fail(records_.name(), ": the file is empty");
  const std::vector<std::string> first = trimmed_cells(records_);
  const bool more = records_.next();
  const std::vector<std::string> second = more ? trimmed_cells(records_) : first;
  // A file read through an encoding learned by name must have those names, so its first row is no
  // matter of guessing.
  const bool expected = encoding && encoding->header;
  header_ = wanted == CsvHeader::kYes ||
            (wanted == CsvHeader::kAuto && (expected || looks_like_header(first, second)));
  if (header_ && !more) fail(records_.name(), ": there are no rows below the header");
  names_ = first;
  for (size_t i = 0; !header_ && i < names_.size(); ++i) names_[i] = std::to_string(i);
}

std::string CsvReader::all_columns() const {
  if (!header_) return concat("there is no header, columns are 0 to ", names_.size() - 1);
  std::string text = "the columns are ";
  for (size_t i = 0; i < std::min(names_.size(), kNamesInMessage); ++i) {
    text += (i > 0 ? ", " : "") + in_quotes(names_[i]);
  }
  if (names_.size() > kNamesInMessage) text += concat(" … (", names_.size(), " in all)");
  return text;
}

size_t CsvReader::find_column(const std::string& name, const std::string& role) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (header_ && found != names_.end()) {
    if (std::find(found + 1, names_.end(), name) != names_.end()) {
      fail(records_.name(), ": two columns are called ", in_quotes(name));
    }
    return static_cast<size_t>(found - names_.begin());
  }
  int64_t index = 0;
  const int64_t width = static_cast<int64_t>(names_.size());
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_index = error == std::errc() && stop == name.data() + name.size();
  if (!is_index || index < -width || index >= width) {
    fail(records_.name(), ": no column ", in_quotes(name), " (", role, "); ", all_columns());
  }
  return static_cast<size_t>(index < 0 ? index + width : index);
}

// The name of a column that is used.
void CsvReader::check_name(size_t cell) const {
  if (is_utf8(names_[cell])) return;
  fail(records_.name(), ": the name of column ", cell, " is not UTF-8 text, expected UTF-8");
}

void CsvReader::find_targets(const std::string& target) {
  // A name may contain a comma itself.
  const bool one_name = header_ && std::find(names_.begin(), names_.end(), target) != names_.end();
  for (const std::string& name : one_name ? std::vector{target} : split_list(target)) {
    const size_t cell = find_column(name, "target");
    if (std::find(target_cells_.begin(), target_cells_.end(), cell) != target_cells_.end()) {
      fail(records_.name(), ": target column ", in_quotes(names_[cell]), " is named twice");
    }
    check_name(cell);
    target_cells_.push_back(cell);
    target_names_.push_back(names_[cell]);
  }
}

// All columns but targets and dropped ones are features.
void CsvReader::choose_columns(const CsvOptions& options) {
  enum class Role { kNumber, kCategory, kTarget, kDropped };
  std::vector<Role> roles(names_.size(), Role::kNumber);
  for (const size_t cell : target_cells_) roles[cell] = Role::kTarget;
  for (const std::string& name : options.drop) {
    const size_t cell = find_column(name, "to drop");
    if (roles[cell] == Role::kTarget) {
      fail(records_.name(), ": column ", in_quotes(names_[cell]),
           " is the target and cannot be dropped");
    }
    roles[cell] = Role::kDropped;
  }
  for (const std::string& name : options.categorical) {
    const size_t cell = find_column(name, "categorical");
    if (roles[cell] == Role::kTarget || roles[cell] == Role::kDropped) {
      fail(records_.name(), ": categorical column ", in_quotes(names_[cell]), " is ",
           roles[cell] == Role::kTarget ? "the target" : "dropped");
    }
    roles[cell] = Role::kCategory;
  }
  encoding_.header = header_;
  encoding_.width = names_.size();
  std::set<std::string> seen;
  for (size_t cell = 0; cell < names_.size(); ++cell) {
    if (roles[cell] == Role::kTarget || roles[cell] == Role::kDropped) continue;
    if (!seen.insert(names_[cell]).second) {
      fail(records_.name(), ": two columns are called ", in_quotes(names_[cell]));
    }
    check_name(cell);
    cells_.push_back(cell);
    encoding_.positions.push_back(cell);
    encoding_.columns.push_back(names_[cell]);
    categorical_.push_back(roles[cell] == Role::kCategory);
  }
  if (cells_.empty()) fail(records_.name(), ": no column is left for the features");
}

// Finds the columns of a given encoding in this file.
void CsvReader::match_columns() {
  const size_t count = encoding_.columns.size();
  const size_t width = names_.size();
  const bool by_name = header_ && encoding_.header;
  if (!by_name && width != encoding_.width && width != count) {
    fail(records_.name(), ": rows of ", width, " cells, expected ", encoding_.width,
         " as in the training file or its ", count, " feature columns alone");
  }
  for (size_t i = 0; i < count; ++i) {
    if (by_name) {
      if (std::find(names_.begin(), names_.end(), encoding_.columns[i]) == names_.end()) {
        fail(records_.name(), ": no column ", in_quotes(encoding_.columns[i]), "; ", all_columns());
      }
      cells_.push_back(find_column(encoding_.columns[i], "feature"));
    } else {
      cells_.push_back(width == encoding_.width ? encoding_.positions[i] : i);
    }
    auto& index = category_index_.emplace_back();
    for (const std::string& name : encoding_.categories[i]) index.emplace(name, index.size());
    categorical_.push_back(!encoding_.categories[i].empty());
  }
}

// Learns categories and means in a pass over the file, where there are any to learn.
void CsvReader::learn(bool impute, bool keep_missing) {
  const size_t count = cells_.size();
  encoding_.categories.resize(count);
  category_index_.resize(count);
  const bool any = std::find(categorical_.begin(), categorical_.end(), true) != categorical_.end();
  if (!any && !impute && !keep_missing) return;
  const bool allowed = impute || keep_missing;
  bool missing = false;

  std::vector<double> sums(count);
  std::vector<size_t> found(count);
  rewind();
  while (next_row()) {
    for (size_t i = 0; i < count; ++i) {
      const std::string_view cell = records_.cells()[cells_[i]];
      if (is_missing(cell) && allowed) {
        missing = true;
        continue;
      }
      if (!categorical_[i]) {
        sums[i] += number(cells_[i]);
      } else if (is_missing(cell)) {
        fail_cell(cells_[i], concat("missing value ", in_quotes(cell), ", expected a category"));
      } else if (category_index_[i].emplace(trimmed(cell), category_index_[i].size()).second) {
        if (!is_utf8(cell)) fail_cell(cells_[i], "category is not UTF-8 text, expected UTF-8");
        encoding_.categories[i].push_back(trimmed(cell));
        if (encoding_.categories[i].size() > kMostCategories) {
          fail_cell(cells_[i], concat("more than ", kMostCategories, " categories so far"));
        }
      }
      ++found[i];
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (found[i] == 0 && !(keep_missing && !categorical_[i])) {
      fail(records_.name(), ": column ", column_text(cells_[i]), " has no values at all");
    }
    if (keep_missing && missing) {
      encoding_.means.push_back(categorical_[i] ? 0 : std::numeric_limits<float>::quiet_NaN());
    } else if (impute) {
      const double mean = categorical_[i] ? 0 : sums[i] / static_cast<double>(found[i]);
      encoding_.means.push_back(static_cast<float>(mean));
    }
  }
}

void CsvReader::rewind() {
  records_.rewind();
  rows_read_ = 0;
  if (header_) records_.next();
}

bool CsvReader::next_row() {
  if (!records_.next()) {
    size_ = rows_read_;
    return false;
  }
  ++rows_read_;
  if (records_.cells().size() != names_.size()) {
    fail(records_.name(), ": line ", records_.line(), ": found ", records_.cells().size(),
         " cells, expected ", names_.size());
  }
  return true;
}

std::string CsvReader::column_text(size_t cell) const {
  return header_ ? in_quotes(names_[cell]) : names_[cell];
}

void CsvReader::fail_cell(size_t cell, const std::string& what) const {
  fail(records_.name(), ": line ", records_.line(), ", column ", column_text(cell), ": ", what);
}

float CsvReader::number(size_t cell) const {
  const std::string_view text = records_.cells()[cell];
  double value;
  if (!parse_number(text, value)) {
    if (is_missing(text)) {
      fail_cell(cell, concat("missing value ", in_quotes(text), ", expected a number"));
    }
    fail_cell(cell, concat("expected a number, found ", in_quotes(text)));
  }
  const float rounded = static_cast<float>(value);
  if (std::isinf(rounded) && text.find_first_of("0123456789") != std::string_view::npos) {
    fail_cell(cell, concat(in_quotes(text), " is too large for a float32"));
  }
  return rounded;
}

// Writes what the column's cell becomes at `out` and moves `out` behind it.
void CsvReader::encode(size_t column, float*& out) const {
  const size_t cell = cells_[column];
  const std::string_view text = records_.cells()[cell];
  const bool impute = !encoding_.means.empty();
  if (!categorical_[column]) {
    double value;
    const bool missing = impute && !parse_number(text, value) && is_missing(text);
    *out = missing ? encoding_.means[column] : number(cell);
    if (std::isinf(*out++)) {  // a target may be infinite, what a network computes with may not
      fail_cell(cell, concat("found ", in_quotes(text), ", expected a finite number"));
    }
    return;
  }
  const auto& index = category_index_[column];
  const auto found = index.find(trimmed(text));
  if (is_missing(text)) {
    if (!impute)
      fail_cell(cell, concat("missing value ", in_quotes(text), ", expected a category"));
  } else if (found == index.end()) {
    fail_cell(cell, concat(in_quotes(text), " is none of the ", index.size(),
                           " categories of the training file"));
  } else {
    out[found->second] = 1;
  }
  out += index.size();
}

size_t CsvReader::skip(size_t count) {
  size_t rows = 0;
  while (rows < count && next_row()) ++rows;
  return rows;
}

bool CsvReader::next(size_t count, Array& x, Array& y) {
  const size_t width = feature_names_.size();
  const size_t targets = target_cells_.size();
  x.values.clear();
  y.values.clear();
  size_t rows = 0;
  while (rows < count && next_row()) {
    x.values.resize((rows + 1) * width);
    float* out = x.values.data() + rows * width;
    for (size_t i = 0; i < cells_.size(); ++i) encode(i, out);
    for (const size_t cell : target_cells_) y.values.push_back(number(cell));
    ++rows;
  }
  x.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(width)};
  y.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(targets)};
  if (targets == 0) y.shape.clear();
  return rows > 0;
}

}  // namespace fcp
