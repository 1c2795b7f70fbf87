#include "fcp/data/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/base/text.h"
#include "fcp/data/number.h"
#include "fcp/data/words.h"

namespace fcp {

namespace {

constexpr size_t kMostCategories = 1000;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

CellFormat CsvEncoding::format(size_t column) const {
  if (!formats.empty()) return formats[column];
  return {.kind = categories[column].empty() ? ColumnKind::kNumber : ColumnKind::kCategory};
}

size_t CsvEncoding::width_of(size_t column) const {
  if (!has_texts(format(column).kind)) return 1;
  return categories[column].size() + (has_other(column) ? 1 : 0);
}

Novelty CsvEncoding::novelty_of_missing(size_t column) const {
  if (!facts.empty()) return facts[column].missing ? Novelty::kNone : Novelty::kMissing;
  // Of files of before: no missing number taught the network a mean.
  const bool none = !formats.empty() && !is_category(column) && !std::isnan(means[column]);
  return none ? Novelty::kMissing : Novelty::kNone;
}

Novelty CsvEncoding::novelty_of(size_t column, std::string_view category) const {
  const bool known = !facts.empty() && facts[column].has_rare(category);
  return known ? Novelty::kNone : Novelty::kUnseen;
}

Novelty CsvEncoding::novelty_of(size_t column, double value) const {
  return !facts.empty() && facts[column].is_far(value) ? Novelty::kRange : Novelty::kNone;
}

void RowNotes::append(const RowNotes& more) {
  if (!flags.empty() || !more.flags.empty()) {
    flags.resize(lines.size());
    flags.insert(flags.end(), more.flags.begin(), more.flags.end());
    flags.resize(lines.size() + more.lines.size());
  }
  lines.insert(lines.end(), more.lines.begin(), more.lines.end());
}

std::vector<std::string> CsvEncoding::feature_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!has_texts(format(i).kind)) names.push_back(columns[i]);
    for (const std::string& category : categories[i]) names.push_back(columns[i] + "=" + category);
    if (has_other(i)) names.push_back(columns[i] + " (other)");
  }
  return names;
}

size_t CsvEncoding::feature_count() const {
  size_t count = 0;
  for (size_t i = 0; i < columns.size(); ++i) count += width_of(i);
  return count;
}

CsvReader::CsvReader(const std::string& path, const std::string& target, const CsvOptions& options)
    : records_(open_text(path, options.text_encoding), options.separator),
      exact_(options.exact),
      threads_(options.threads > 0 ? options.threads : usual_threads()) {
  // A file read through an encoding learned by name must have those names, so its first row is no
  // matter of guessing.
  head_ = read_head(records_, options.header, options.encoding && options.encoding->header);
  if (options.refused && options.refused->contains(path)) refused_ = options.refused->at(path);
  flagged_ = options.encoding.has_value();
  if (options.encoding) encoding_ = *options.encoding;
  for (const std::string& mark : options.missing) {
    const auto& known = encoding_.missing;
    if (std::find(known.begin(), known.end(), mark) == known.end())
      encoding_.missing.push_back(mark);
  }
  records_.set_missing(encoding_.missing);
  if (options.encoding) {
    if (!encoding_.formats.empty()) make_names_unique(head_);
    if (!target.empty()) find_targets(target);
    match_columns();
  } else if (options.find_types) {
    schema_ = find_schema(path, target,
                          {.separator = options.separator,
                           .header = options.header,
                           .drop = options.drop,
                           .categorical = options.categorical,
                           .types = options.types,
                           .missing = options.missing,
                           .text_encoding = options.text_encoding});
    head_ = schema_->head;
    if (!target.empty()) find_targets(target);
    choose_typed_columns(options);
    learn_typed(options);
  } else {
    if (!target.empty()) find_targets(target);
    choose_columns(options);
    learn(options.impute, options.keep_missing);
    if (options.missing_as_nan && encoding_.means.empty()) {
      for (size_t i = 0; i < cells_.size(); ++i) {
        encoding_.means.push_back(formats_[i].kind == ColumnKind::kCategory ? 0 : kNan);
      }
    }
  }
  target_formats_ = encoding_.target_formats;
  target_formats_.resize(target_cells_.size());
  feature_names_ = encoding_.feature_names();
  rewind();
}

// The name of a column that is used.
void CsvReader::check_name(size_t cell) const {
  if (is_utf8(head_.names[cell])) return;
  fail(records_.name(), ": the name of column ", cell, " is not UTF-8 text, expected UTF-8");
}

void CsvReader::find_targets(const std::string& target) {
  target_cells_ = head_.find_list(target, "target");
  for (const size_t cell : target_cells_) {
    check_name(cell);
    target_names_.push_back(head_.names[cell]);
  }
}

void CsvReader::add_column(size_t cell, const CellFormat& format) {
  check_name(cell);
  cells_.push_back(cell);
  encoding_.positions.push_back(cell);
  encoding_.columns.push_back(head_.names[cell]);
  formats_.push_back(format);
}

// All columns but targets and dropped ones are features.
void CsvReader::choose_columns(const CsvOptions& options) {
  enum class Role { kNumber, kCategory, kTarget, kDropped };
  std::vector<Role> roles(head_.names.size(), Role::kNumber);
  for (const size_t cell : target_cells_) roles[cell] = Role::kTarget;
  for (const std::string& name : options.drop) {
    const size_t cell = head_.find(name, "to drop");
    if (roles[cell] == Role::kTarget) {
      fail(records_.name(), ": column ", in_quotes(head_.names[cell]),
           " is the target and cannot be dropped");
    }
    roles[cell] = Role::kDropped;
  }
  for (const std::string& name : options.categorical) {
    const size_t cell = head_.find(name, "categorical");
    if (roles[cell] == Role::kTarget || roles[cell] == Role::kDropped) {
      fail(records_.name(), ": categorical column ", in_quotes(head_.names[cell]), " is ",
           roles[cell] == Role::kTarget ? "the target" : "dropped");
    }
    roles[cell] = Role::kCategory;
  }
  encoding_.header = head_.header;
  encoding_.width = head_.names.size();
  std::set<std::string> seen;
  for (size_t cell = 0; cell < head_.names.size(); ++cell) {
    if (roles[cell] == Role::kTarget || roles[cell] == Role::kDropped) continue;
    if (!seen.insert(head_.names[cell]).second) {
      fail(records_.name(), ": two columns are called ", in_quotes(head_.names[cell]));
    }
    const bool category = roles[cell] == Role::kCategory;
    add_column(cell, {.kind = category ? ColumnKind::kCategory : ColumnKind::kNumber});
  }
  if (cells_.empty()) fail(records_.name(), ": no column is left for the features");
}

// Finds the columns of a given encoding in this file.
void CsvReader::match_columns() {
  const size_t count = encoding_.columns.size();
  const size_t width = head_.names.size();
  const bool by_name = head_.header && encoding_.header;
  if (!by_name && width != encoding_.width && width != count) {
    fail(records_.name(), ": rows of ", width, " cells, expected ", encoding_.width,
         " as in the training file or its ", count, " feature columns alone");
  }
  std::string absent, first;
  for (size_t i = 0; by_name && i < count; ++i) {
    if (head_.has(encoding_.columns[i])) continue;
    if (absent.empty()) first = encoding_.columns[i];
    absent += (absent.empty() ? "" : ", ") + in_quotes(encoding_.columns[i]);
  }
  if (!absent.empty()) {
    fail(records_.name(), ": no column ", absent, "; ", head_.all_columns(), head_.hint(first));
  }
  for (size_t i = 0; i < count; ++i) {
    cells_.push_back(by_name                    ? head_.find(encoding_.columns[i], "feature")
                     : width == encoding_.width ? encoding_.positions[i]
                                                : i);
    formats_.push_back(encoding_.format(i));
  }
  index_categories();
}

void CsvReader::index_categories() {
  category_index_.clear();
  for (const std::vector<std::string>& categories : encoding_.categories) {
    auto& index = category_index_.emplace_back();
    for (const std::string& name : categories) index.emplace(name, index.size());
  }
  for (const std::string& name : encoding_.classes) class_index_.emplace(name, class_index_.size());
}

// Learns categories and means in a pass over the file, where there are any to learn.
void CsvReader::learn(bool impute, bool keep_missing) {
  const size_t count = cells_.size();
  encoding_.categories.resize(count);
  category_index_.resize(count);
  const auto is_category = [&](size_t i) { return formats_[i].kind == ColumnKind::kCategory; };
  bool any = false;
  for (size_t i = 0; i < count; ++i) any = any || is_category(i);
  if (!any && !impute && !keep_missing) return;
  const bool allowed = impute || keep_missing;
  bool missing = false, missing_number = false;

  std::vector<double> sums(count);
  std::vector<size_t> found(count);
  rewind();
  while (next_row()) {
    for (size_t i = 0; i < count; ++i) {
      const std::string_view cell = records_.cells()[cells_[i]];
      if (is_missing(cell) && allowed) {
        missing = true;
        missing_number = missing_number || !is_category(i);
        continue;
      }
      if (!is_category(i)) {
        sums[i] += static_cast<float>(number(records_.row(), cells_[i], formats_[i]));
      } else if (is_missing(cell)) {
        fail_cell(records_.row(), cells_[i], CellProblem::Kind::kMissing,
                  concat("missing value ", in_quotes(cell), ", expected a category"));
      } else if (category_index_[i].emplace(trimmed(cell), category_index_[i].size()).second) {
        const auto kind = CellProblem::Kind::kNotThis;
        if (!is_utf8(cell))
          fail_cell(records_.row(), cells_[i], kind, "category is not UTF-8 text, expected UTF-8");
        encoding_.categories[i].push_back(trimmed(cell));
        if (encoding_.categories[i].size() > kMostCategories) {
          fail_cell(records_.row(), cells_[i], kind,
                    concat("more than ", kMostCategories, " categories so far"));
        }
      }
      ++found[i];
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (found[i] == 0 && !(keep_missing && !is_category(i))) {
      fail(records_.name(), ": column ", head_.column_text(cells_[i]), " has no values at all");
    }
    if (keep_missing && missing_number) {  // which the network learns to read
      encoding_.means.push_back(is_category(i) ? 0 : kNan);
    } else if (impute || (keep_missing && missing)) {
      const double mean = is_category(i) ? 0 : sums[i] / static_cast<double>(found[i]);
      encoding_.means.push_back(static_cast<float>(mean));
    }
  }
}

void CsvReader::rewind() {
  records_.rewind();
  rows_read_ = rows_passed_ = next_refused_ = 0;
  odd_ = {};
  if (head_.header) records_.next();
}

// To the next row that is not refused.
bool CsvReader::advance() {
  while (records_.next()) {
    const size_t row = rows_passed_++;
    if (next_refused_ == refused_.size() || refused_[next_refused_] != row) return true;
    ++next_refused_;
  }
  return false;
}

bool CsvReader::next_row() {
  if (!advance()) {
    size_ = rows_read_;
    return false;
  }
  ++rows_read_;
  check_width(records_.row());
  return true;
}

size_t CsvReader::skip(size_t count) {
  size_t rows = 0;
  while (rows < count && advance()) {
    ++rows_read_;
    ++rows;
  }
  if (rows < count) size_ = rows_read_;
  return rows;
}

std::vector<std::string> CsvReader::notes() const {
  return schema_ ? schema_->notes : std::vector<std::string>();
}

std::vector<std::string> CsvReader::warnings() const {
  std::vector<std::string> lines;
  if (!odd_.novelties.none()) {
    lines.push_back(concat(records_.name(), ": ", odd_.novelties.text(rows_read_)));
  }
  if (odd_.unknown > 0) {
    const Oddities& odd = odd_;
    lines.push_back(concat(
        records_.name(), ": column ", in_quotes(target_names_[0]), ": ", odd.unknown,
        odd.unknown == 1 ? " label, " : " labels, as ", in_quotes(odd.example),
        odd.unknown == 1 ? ", is" : ", are", " none of the ", encoding_.classes.size(),
        " classes of the training rows: no set can hold such a label, it counts ", "as a miss"));
  }
  return lines;
}

}  // namespace fcp
