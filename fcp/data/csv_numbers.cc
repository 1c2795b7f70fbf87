// The part of CsvReader that makes numbers of rows, on several threads.
//
// Rows that are in memory together are cut into shares of whole rows, one for each thread, which
// writes at the places that its rows have in the batch. A share ends at its first row that cannot
// be read; of all shares the first one's complaint counts, which is the one that a single thread
// would have come to. Cost: memory is that of the text that is held, whatever the threads.
// Tested by tests/data/csv_threads_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/data/csv.h"
#include "fcp/data/number.h"
#include "fcp/data/words.h"

namespace fcp {
namespace {

constexpr size_t kShareBytes = size_t{1} << 16;  // below, a thread costs more than it saves

}  // namespace

void CsvReader::check_width(const CsvCells& row) const {
  if (row.cells().size() == head_.names.size()) return;
  const std::string where = concat("line ", row.line(), ": found ", row.cells().size(),
                                   " cells, expected ", head_.names.size());
  throw CellProblem(concat(records_.name(), ": ", where), where, 0, CellProblem::Kind::kWidth);
}

void CsvReader::fail_cell(const CsvCells& row, size_t cell, CellProblem::Kind kind,
                          const std::string& what) const {
  const std::string where =
      concat("line ", row.line(), ", column ", head_.column_text(cell), ": ", what);
  throw CellProblem(concat(records_.name(), ": ", where), where, cell, kind);
}

double CsvReader::number(const CsvCells& row, size_t cell, const CellFormat& format) const {
  const std::string_view text = row.cells()[cell];
  double value;
  if (!parse_cell(text, format, value)) {
    const std::string expected = expected_text(format.kind);
    if (is_missing(text)) {
      fail_cell(row, cell, CellProblem::Kind::kMissing,
                concat("missing value ", in_quotes(text), ", expected ", expected));
    }
    fail_cell(row, cell, CellProblem::Kind::kNotThis,
              concat("expected ", expected, ", found ", in_quotes(text)));
  }
  const float rounded = static_cast<float>(value);
  if (std::isinf(rounded) && text.find_first_of("0123456789") != std::string_view::npos) {
    fail_cell(row, cell, CellProblem::Kind::kTooLarge,
              concat(in_quotes(text), " is too large for a float32"));
  }
  return value;
}

// A number, or the label of a class; infinite where the class is none of those that were learned,
// so that no set can hold it.
float CsvReader::target(const CsvCells& row, size_t index) const {
  const size_t cell = target_cells_[index];
  if (class_index_.empty()) return static_cast<float>(number(row, cell, target_formats_[index]));
  const std::string_view text = row.cells()[cell];
  const auto found = class_index_.find(trimmed(text));
  if (found != class_index_.end()) return static_cast<float>(found->second);
  if (is_missing(text)) {
    fail_cell(row, cell, CellProblem::Kind::kMissing,
              concat("missing value ", in_quotes(text), ", expected a class"));
  }
  return std::numeric_limits<float>::infinity();
}

// Writes what the column's cell becomes at `out` and moves `out` behind it.
void CsvReader::flag(Novelty novelty, size_t column, std::string* flags) const {
  if (flags == nullptr || novelty == Novelty::kNone) return;
  add_flag(novelty_flag(novelty, encoding_.columns[column]), *flags);
}

void CsvReader::encode(const CsvCells& row, size_t column, double*& out, std::string* flags) const {
  const CellFormat& format = formats_[column];
  if (has_texts(format.kind)) {
    encode_category(row, column, out, flags);
    out += encoding_.width_of(column);
    return;
  }
  const size_t cell = cells_[column];
  const std::string_view text = row.cells()[cell];
  double value;
  const bool missing =
      !encoding_.means.empty() && !parse_cell(text, format, value) && is_missing(text);
  *out = missing ? static_cast<double>(encoding_.means[column]) : number(row, cell, format);
  if (flags != nullptr) {
    flag(missing ? encoding_.novelty_of_missing(column) : encoding_.novelty_of(column, *out),
         column, flags);
  }
  if (std::isinf(*out++)) {  // a target may be infinite, what a network computes with may not
    fail_cell(row, cell, CellProblem::Kind::kInfinite,
              concat("found ", in_quotes(text), ", expected a finite number"));
  }
}

void CsvReader::encode_category(const CsvCells& row, size_t column, double* out,
                                std::string* flags) const {
  const size_t cell = cells_[column];
  const std::string_view text = row.cells()[cell];
  const auto& index = category_index_[column];
  const bool words = formats_[column].kind == ColumnKind::kText;
  if (words && !is_missing(text)) {
    bool known = false;
    for (const std::string& word : distinct_words(text)) {
      const auto place = index.find(word);
      if (place == index.end()) continue;
      out[place->second] = 1;
      known = true;
    }
    if (!known && encoding_.has_other(column)) out[index.size()] = 1;
    return;
  }
  const auto found = index.find(trimmed(text));
  if (found != index.end()) {
    out[found->second] = 1;
  } else if (!is_missing(text)) {
    if (encoding_.has_other(column)) out[index.size()] = 1;
    if (flags != nullptr) flag(encoding_.novelty_of(column, trimmed(text)), column, flags);
  } else if (encoding_.means.empty()) {
    fail_cell(row, cell, CellProblem::Kind::kMissing,
              concat("missing value ", in_quotes(text), ", expected ",
                     expected_text(formats_[column].kind)));
  } else {
    flag(encoding_.novelty_of_missing(column), column, flags);
  }
}

void CsvReader::add_oddities(const Oddities& more) {
  odd_.novelties.add(more.novelties);
  if (odd_.unknown == 0) odd_.example = more.example;
  odd_.unknown += more.unknown;
}

// The next rows that are not refused, as text; false at the end.
bool CsvReader::next_lines(size_t count) {
  do {
    records_.next_lines(count, lines_);
    if (lines_.empty()) {
      size_ = rows_read_;
      return false;
    }
    const auto refused = [&](const CsvLine&) {
      const size_t row = rows_passed_++;
      if (next_refused_ == refused_.size() || refused_[next_refused_] != row) return false;
      ++next_refused_;
      return true;
    };
    lines_.erase(std::remove_if(lines_.begin(), lines_.end(), refused), lines_.end());
  } while (lines_.empty());
  rows_read_ += lines_.size();
  return true;
}

// Adds the numbers of lines_.
void CsvReader::read_lines(Array& x, Array& y) {
  const size_t width = feature_names_.size(), targets = target_cells_.size();
  const size_t rows = lines_.size(), before_x = x.values.size(), before_y = y.values.size();
  x.values.resize(before_x + rows * width);
  if (exact_) x.exact.resize(before_x + rows * width);
  y.values.resize(before_y + rows * targets);
  const bool exact_targets = exact_ && class_index_.empty();
  if (exact_targets) y.exact.resize(before_y + rows * targets);
  const size_t before_notes = notes_.lines.size();
  notes_.lines.resize(before_notes + rows);
  if (flagged_) notes_.flags.resize(before_notes + rows);
  std::mutex mutex;
  std::map<size_t, Oddities> odd;  // by the first row of a share
  const auto read = [&](size_t first, size_t last) {
    CsvCells cells;
    std::vector<double> row(width);
    Oddities own;
    for (size_t at = first; at < last; ++at) {
      cells.split(lines_[at], records_.separator(), records_.name());
      cells.blank(encoding_.missing);
      check_width(cells);
      notes_.lines[before_notes + at] = cells.line();
      std::string* const flags = flagged_ ? &notes_.flags[before_notes + at] : nullptr;
      std::fill(row.begin(), row.end(), 0);  // categories set one number each
      double* out = row.data();
      for (size_t i = 0; i < cells_.size(); ++i) encode(cells, i, out, flags);
      if (flagged_) own.novelties.add(*flags);
      for (size_t i = 0; i < targets; ++i) {
        const float value = target(cells, i);
        y.values[before_y + at * targets + i] = value;
        if (exact_targets) {
          y.exact[before_y + at * targets + i] =
              number(cells, target_cells_[i], target_formats_[i]);
        }
        if (class_index_.empty() || std::isfinite(value)) continue;
        if (own.unknown++ == 0) own.example = trimmed(cells.cells()[target_cells_[i]]);
      }
      const size_t place = before_x + at * width;
      for (size_t i = 0; i < width; ++i) x.values[place + i] = static_cast<float>(row[i]);
      if (exact_) std::copy(row.begin(), row.end(), x.exact.data() + place);
    }
    const std::lock_guard lock(mutex);
    odd[first] = std::move(own);
  };
  const auto bytes = static_cast<size_t>(lines_.back().last - lines_.front().first);
  parallel_rows(rows, rows * kShareBytes / (bytes + 1) + 1, threads_, read);
  for (const auto& [first, own] : odd) add_oddities(own);
}

bool CsvReader::next(size_t count, Array& x, Array& y) {
  x.values.clear();
  x.exact.clear();
  y.values.clear();
  y.exact.clear();
  notes_ = {};
  size_t rows = 0;
  try {
    for (; rows < count && next_lines(count - rows); rows += lines_.size()) read_lines(x, y);
  } catch (const CellProblem&) {  // where there is one there may be more
    const TableProblems problems = find_problems();
    std::vector<std::string> columns;
    for (const size_t cell : problems.cells(CellProblem::Kind::kNotThis)) {
      const auto is = std::find(target_cells_.begin(), target_cells_.end(), cell);
      if (schema_ && is == target_cells_.end()) columns.push_back(head_.names[cell]);
    }
    throw TableError(problems.text(records_.name()), std::move(columns));
  }
  x.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(feature_names_.size())};
  y.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(target_cells_.size())};
  if (target_cells_.empty()) y.shape.clear();
  return rows > 0;
}

// Every cell of the current row by itself, targets first.
bool CsvReader::check_row(TableProblems& problems, CellProblem& first) {
  bool good = true;
  const auto attempt = [&](const auto& read) {
    try {
      read();
    } catch (const CellProblem& problem) {
      problems.add(problem);
      if (good) first = problem;
      good = false;
    }
  };
  const CsvCells& row = records_.row();
  for (size_t i = 0; i < target_cells_.size(); ++i) attempt([&] { target(row, i); });
  std::vector<double> features(feature_names_.size());
  for (size_t i = 0; i < cells_.size(); ++i) {
    double* out = features.data();
    attempt([&] { encode(row, i, out, nullptr); });
    if (has_texts(formats_[i].kind)) std::fill(features.begin(), features.end(), 0);
  }
  return good;
}

TableProblems CsvReader::find_problems(const RowHearer& hear) {
  TableProblems problems;
  rewind();
  while (true) {
    CellProblem first;
    bool good = true;
    try {
      if (!next_row()) break;
      good = check_row(problems, first);
    } catch (const CellProblem& problem) {
      problems.add(problem);
      first = problem;
      good = false;
    }
    if (good) continue;
    ++problems.rows;
    if (hear) hear(rows_passed_ - 1, first);
  }
  rewind();
  return problems;
}

}  // namespace fcp
