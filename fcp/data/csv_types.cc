// The part of CsvReader that learns from a file whose column types were inferred: which columns
// are features, their categories and means, and the classes of the target.
//
// A category that few rows have teaches nothing: those of fewer than 3 rows (2 in files of fewer
// than 100), and all but the 64 most frequent, are one category "other". Of a column of text the 64
// most frequent words are features, of those that 5 rows and one row in a hundred have.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include "fcp/base/error.h"
#include "fcp/base/text.h"
#include "fcp/data/csv.h"
#include "fcp/data/number.h"
#include "fcp/data/words.h"

namespace fcp {
namespace {

constexpr size_t kMostKept = 64;        // categories of a column
constexpr size_t kMostCounted = 20000;  // distinct texts of a column; beyond, they are rare
constexpr size_t kMostRare = 2000;      // that are told from categories of no training row
constexpr size_t kMostWords = 64, kFewestWordRows = 5, kWordRowsPart = 100;
constexpr size_t kMostClasses = 1000;
constexpr char kOtherClass[] = "(other)";

// How often each category comes, in order of first appearance.
struct CategoryCounts {
  std::unordered_map<std::string, size_t> index;
  std::vector<std::pair<std::string, size_t>> counts;
  bool overflow = false;

  void add(std::string text) {
    const auto found = index.find(text);
    if (found != index.end()) {
      ++counts[found->second].second;
    } else if (counts.size() >= kMostCounted) {
      overflow = true;
    } else {
      index.emplace(text, counts.size());
      counts.emplace_back(std::move(text), 1);
    }
  }

  double share(const std::string& text, size_t rows) const {
    return static_cast<double>(counts[index.at(text)].second) / static_cast<double>(rows);
  }

  // Those that are kept; `other`: whether there are more, which `facts` then tells apart.
  std::vector<std::string> kept(size_t rows, bool& other, ColumnFacts& facts) const {
    const size_t least = rows < 100 ? 2 : 3;
    std::vector<size_t> sizes;
    for (const auto& [text, count] : counts) sizes.push_back(count);
    std::sort(sizes.rbegin(), sizes.rend());
    const size_t bar = sizes.size() > kMostKept ? std::max(least, sizes[kMostKept]) : least;
    std::vector<std::string> names;
    for (const auto& [text, count] : counts) {
      if (count >= bar && names.size() < kMostKept) {
        names.push_back(text);
      } else if (facts.rare.size() < kMostRare) {
        facts.rare.push_back(category_hash(text));
      } else {
        facts.more = true;
      }
    }
    std::sort(facts.rare.begin(), facts.rare.end());
    facts.more = facts.more || overflow;
    other = overflow || names.size() < counts.size();
    return names;
  }

  // The words that are kept, the most frequent first.
  std::vector<std::string> kept_words(size_t rows) const {
    std::vector<std::pair<std::string, size_t>> frequent = counts;
    const size_t least = std::max(kFewestWordRows, rows / kWordRowsPart);
    std::erase_if(frequent, [&](const auto& word) { return word.second < least; });
    std::stable_sort(frequent.begin(), frequent.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    frequent.resize(std::min(frequent.size(), kMostWords));
    std::vector<std::string> names;
    for (auto& [word, count] : frequent) names.push_back(std::move(word));
    return names;
  }
};

bool learns_from(const CsvOptions& options, size_t row) {
  return !options.learn_rows || (row < options.learn_rows->size() && (*options.learn_rows)[row]);
}

bool less_as_number(const std::string& a, const std::string& b) {
  double left = 0, right = 0;
  if (parse_number(a, left) && parse_number(b, right)) return left < right;
  return a < b;
}

}  // namespace

bool takes_classes(const TableSchema& schema, CsvLabels labels) {
  const auto is_text = [](const TableColumn& column) {
    return column.target && column.format.kind == ColumnKind::kCategory;
  };
  const bool text = std::any_of(schema.columns.begin(), schema.columns.end(), is_text);
  return labels == CsvLabels::kAlways || (text && labels != CsvLabels::kNumbers) ||
         (labels == CsvLabels::kFewValues && schema.few_whole_numbers);
}

void CsvReader::choose_typed_columns(const CsvOptions& options) {
  encoding_.header = head_.header;
  encoding_.width = head_.names.size();
  for (size_t cell = 0; cell < schema_->columns.size(); ++cell) {
    const TableColumn& column = schema_->columns[cell];
    if (column.target || column.dropped || !is_read(column.format.kind)) continue;
    add_column(cell, column.format);
  }
  if (cells_.empty()) fail(records_.name(), ": no column is left for the features");
  encoding_.formats = formats_;
  bool text = false;
  for (const size_t cell : target_cells_) {
    encoding_.target_formats.push_back(schema_->columns[cell].format);
    text = text || schema_->columns[cell].format.kind == ColumnKind::kCategory;
  }
  const bool classes = takes_classes(*schema_, options.labels);
  if (classes && target_cells_.size() != 1) {
    fail(records_.name(), ": ", target_cells_.size(), " targets, expected one for classification");
  }
  if (classes) {
    // Of the rows that are learned from: a class that the network never sees is none of its
    // answers.
    const size_t cell = target_cells_[0];
    std::set<std::string> names;
    rewind();
    for (size_t row = 0; advance(); ++row) {
      if (!learns_from(options, row)) continue;
      if (cell >= records_.cells().size() || is_missing(records_.cells()[cell])) continue;
      const std::string name = trimmed(records_.cells()[cell]);
      if (!is_utf8(name)) {
        fail(records_.name(), ": line ", records_.line(), ", column ", head_.column_text(cell),
             ": the class is not UTF-8 text, expected UTF-8");
      }
      names.insert(name);
      if (names.size() > kMostClasses) {
        fail(records_.name(), ": column ", head_.column_text(cell), ": more than ", kMostClasses,
             " classes; is it a number?");
      }
    }
    encoding_.classes.assign(names.begin(), names.end());
    std::stable_sort(encoding_.classes.begin(), encoding_.classes.end(), less_as_number);
    // A classifier has two answers at least, also where a part of the rows has but one class.
    if (options.learn_rows && names.size() == 1) encoding_.classes.push_back(kOtherClass);
    encoding_.target_formats = {{.kind = ColumnKind::kCategory}};
  } else if (text) {  // numbers are what is wanted: the cells will be refused
    for (CellFormat& format : encoding_.target_formats) format.kind = ColumnKind::kNumber;
  }
}

void CsvReader::learn_typed(const CsvOptions& options) {
  const size_t count = cells_.size();
  std::vector<CategoryCounts> categories(count);
  std::vector<double> sums(count);
  std::vector<size_t> found(count);
  std::vector<ColumnFacts> facts(count);
  bool missing = false;  // numbers: only then does the network learn to read them
  size_t rows = 0, row = 0;
  rewind();
  for (; advance(); ++row) {
    if (!learns_from(options, row) || records_.cells().size() != head_.names.size()) continue;
    ++rows;
    for (size_t i = 0; i < count; ++i) {
      const std::string_view cell = records_.cells()[cells_[i]];
      double value = 0;
      if (is_missing(cell)) {
        missing = missing || !has_texts(formats_[i].kind);
        facts[i].missing = true;
      } else if (formats_[i].kind == ColumnKind::kCategory) {
        if (is_utf8(cell)) categories[i].add(trimmed(cell));
      } else if (formats_[i].kind == ColumnKind::kText) {
        for (std::string& word : distinct_words(is_utf8(cell) ? cell : std::string_view())) {
          categories[i].add(std::move(word));
        }
      } else if (parse_cell(cell, formats_[i], value) && std::isfinite(value)) {
        sums[i] += value;
        ++found[i];
        facts[i].low = std::min(facts[i].low, value);
        facts[i].high = std::max(facts[i].high, value);
      }
    }
  }
  size_ = row;
  encoding_.categories.resize(count);
  encoding_.others.resize(count);
  const bool keep = options.keep_missing && missing && !options.impute;
  for (size_t i = 0; i < count; ++i) {
    const bool words = formats_[i].kind == ColumnKind::kText, texts = has_texts(formats_[i].kind);
    bool other = false;
    if (words) {
      encoding_.categories[i] = categories[i].kept_words(rows);
    } else if (texts) {
      encoding_.categories[i] = categories[i].kept(rows, other, facts[i]);
    }
    encoding_.others[i] = other || (texts && encoding_.categories[i].empty());
    const double mean = found[i] == 0 ? 0 : sums[i] / static_cast<double>(found[i]);
    encoding_.means.push_back(texts  ? 0
                              : keep ? std::numeric_limits<float>::quiet_NaN()
                                     : static_cast<float>(mean));
    if (!texts) encoding_.typical.push_back(static_cast<float>(mean));
    double rest = texts && rows > 0 ? 1 : 0;
    for (const std::string& name : encoding_.categories[i]) {
      const double share = categories[i].share(name, rows);
      encoding_.typical.push_back(static_cast<float>(share));
      rest -= share;
    }
    if (encoding_.others[i]) encoding_.typical.push_back(static_cast<float>(std::max(0.0, rest)));
  }
  encoding_.facts = std::move(facts);
  index_categories();
}

}  // namespace fcp
