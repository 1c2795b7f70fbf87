// CSV files as features x and targets y.
//
// Columns are numbers, unless options say otherwise: text columns named `categorical` become
// one-hot columns, missing values are refused or replaced by the column's mean. With `find_types`
// column types are inferred (fcp/data/table_schema.h) and nothing needs to be said. What was
// learned from the training file is a CsvEncoding, which applied to another file gives the same
// columns in the same order.
//
// A category that the training file did not have is "other" where rare ones were pooled there, and
// none of the known ones elsewhere; a class that it did not have is an infinite target. Rows with
// what no training row had (fcp/data/table_schema.h) are flagged, and warnings() counts them.
//
// A column is named by its header, or by its 0-based index (negative: from the end); a header
// that reads like an index wins over the index. Where the header is not said to be there or not,
// the first row is a header when it has text (a cell neither a number nor missing) and either
// no number at all, or text that stands above a number or a missing value in the second row.
//
// Rows are read by several threads, each a share of those that are in memory; what is read and what
// is said of rows that cannot be does not depend on their number.
//
// Cells that cannot be read are a TableError that tells of all of them, not of the first alone.
//
// Tested by tests/data/csv_test.cc and tests/data/csv_types_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/csv_head.h"
#include "fcp/data/csv_records.h"
#include "fcp/data/number.h"
#include "fcp/data/table_schema.h"
#include "fcp/data/text_encoding.h"

namespace fcp {

// How the columns of the training file became features. Store it with the network: a file to
// predict is read through it. All vectors have one entry for each feature column of the file.
struct CsvEncoding {
  bool header = true;  // were the columns matched by name? If not, by position
  size_t width = 0;    // cells of a row of the training file, targets and dropped columns included
  std::vector<std::string> columns = {};  // names; without a header their positions as text
  std::vector<size_t> positions = {};     // in the training file
  // In order of first appearance; empty for a column of numbers. Numbers count as text: "1" and
  // "1.0" are two categories. Of a column of text its words.
  std::vector<std::vector<std::string>> categories = {};
  // What a missing number becomes, which may be NaN; empty: missing values are refused. 0 for a
  // categorical column.
  std::vector<float> means = {};
  // Of the cells; empty: plain numbers and categories.
  std::vector<CellFormat> formats = {};
  // Whether the last feature of a categorical column stands for all categories but those listed;
  // empty: none does.
  std::vector<bool> others = {};
  // Of the targets; empty: plain numbers.
  std::vector<CellFormat> target_formats = {};
  // What the target's labels are called, by label; empty where the target is a number.
  std::vector<std::string> classes = {};
  // Of the training rows; empty: a file of before does not say.
  std::vector<ColumnFacts> facts = {};
  // The mean of each feature over the training rows, of categories their shares; empty: not known.
  std::vector<float> typical = {};
  // Cells that stand for no value besides those that always do (fcp/data/number.h).
  std::vector<std::string> missing = {};

  // Names of the features: a column of numbers keeps its name, a category is "column=category".
  std::vector<std::string> feature_names() const;
  size_t feature_count() const;

  // Of one column, whether or not the vectors above are empty.
  CellFormat format(size_t column) const;
  bool has_other(size_t column) const { return column < others.size() && others[column]; }
  bool is_category(size_t column) const { return format(column).kind == ColumnKind::kCategory; }
  size_t width_of(size_t column) const;  // features

  // What a cell has that no training row had: one without a value, a category, or a number.
  Novelty novelty_of_missing(size_t column) const;
  Novelty novelty_of(size_t column, std::string_view category) const;  // not among the categories
  Novelty novelty_of(size_t column, double value) const;
};

// What is known of rows besides their numbers, one entry for each row.
struct RowNotes {
  std::vector<size_t> lines = {};       // of the file, on which they begin
  std::vector<std::string> flags = {};  // what no training row had (table_schema.h): "" or flags;
                                        // empty where the file was learned from itself

  void append(const RowNotes& more);
};

// When a target's cells are names of classes. Of a file that is read through an encoding, it says.
enum class CsvLabels { kNumbers, kText, kFewValues, kAlways };

// Rows of files that are passed over as if they were not there, by path; numbered from 0.
using RefusedRows = std::map<std::string, std::vector<size_t>>;

struct CsvOptions {
  char separator = 0;  // 0: detected among , ; tab |
  CsvHeader header = CsvHeader::kAuto;
  std::vector<std::string> drop = {};         // columns that are neither features nor targets
  std::vector<std::string> categorical = {};  // columns to one-hot
  bool impute = false;                        // missing features become the column's mean
  bool keep_missing = false;                  // … become NaN, in files that have some
  bool missing_as_nan = false;                // … become NaN in any file, .npy included
  bool exact = false;  // x.exact is filled too, and y.exact of targets that are numbers
  // Read through this encoding instead of learning one; drop, categorical, impute, keep_missing and
  // missing_as_nan are then not looked at. With headers the columns are found by name, in any
  // order, and others are ignored; without, a row must have as many cells as the training file or
  // as there are feature columns.
  std::optional<CsvEncoding> encoding = {};
  bool find_types = false;                          // column types are inferred
  std::map<std::string, std::string> types = {};    // … but for these (table_schema.h)
  CsvLabels labels = CsvLabels::kNumbers;           // find_types: of the target
  std::shared_ptr<const RefusedRows> refused = {};  // null: none
  size_t threads = 0;                     // that read rows; 0: as many as usual (parallel.h)
  std::vector<std::string> missing = {};  // cells that stand for no value besides the usual ones
  TextEncoding text_encoding = TextEncoding::kUtf8;
  // find_types: rows that categories, means and classes are learned from; null: all.
  std::shared_ptr<const std::vector<bool>> learn_rows = {};
};

// Whether the target of the table is classes.
bool takes_classes(const TableSchema& schema, CsvLabels labels);

class CsvReader {
 public:
  // target: a column, or several with commas between; empty for none. Missing targets are refused
  // always. Reads the file once beforehand where categories or means must be learned, and once more
  // where types must be inferred.
  CsvReader(const std::string& path, const std::string& target, const CsvOptions& options = {});

  // The next rows, at most `count`: x [n, features], y [n, targets] (empty without target). False
  // when there are none left.
  bool next(size_t count, Array& x, Array& y);
  // What is known of the rows that next() gave.
  const RowNotes& row_notes() const { return notes_; }
  // Passes over rows and returns how many; fewer than `count` at the end. Numbers are not read.
  size_t skip(size_t count);
  void rewind();

  const CsvEncoding& encoding() const { return encoding_; }
  const std::vector<std::string>& feature_names() const { return feature_names_; }
  const std::vector<std::string>& target_names() const { return target_names_; }
  // Rows of data; known when the file was read beforehand or has been read to its end.
  std::optional<size_t> size() const { return size_; }

  // What the columns are; null unless it was inferred here.
  const TableSchema* schema() const { return schema_ ? &*schema_ : nullptr; }
  // What was left out, and since the last rewind: rows with what no training row had, and labels
  // of no class.
  std::vector<std::string> notes() const;
  std::vector<std::string> warnings() const;

  // Goes over all rows from the beginning; `hear` gets the number of each row that has problems,
  // counted from 0 with those that are passed over, and the first of them.
  using RowHearer = std::function<void(size_t row, const CellProblem& problem)>;
  TableProblems find_problems(const RowHearer& hear = {});
  // The cells of the row that `hear` is told of, and of all rows: names, and where targets stand.
  const CsvRecords& records() const { return records_; }
  const std::vector<std::string>& column_names() const { return head_.names; }
  const std::vector<size_t>& target_cells() const { return target_cells_; }

 private:
  struct Oddities {  // of the rows that were read
    NoveltyCounts novelties{};
    size_t unknown = 0;  // labels
    std::string example{};
  };

  void check_name(size_t cell) const;
  void find_targets(const std::string& target);
  void choose_columns(const CsvOptions& options);
  void choose_typed_columns(const CsvOptions& options);
  void add_column(size_t cell, const CellFormat& format);
  void match_columns();
  void index_categories();
  void learn(bool impute, bool keep_missing);
  void learn_typed(const CsvOptions& options);
  bool next_row();
  bool advance();
  bool next_lines(size_t count);
  void read_lines(Array& x, Array& y);
  void add_oddities(const Oddities& more);
  void flag(Novelty novelty, size_t column, std::string* flags) const;
  bool check_row(TableProblems& problems, CellProblem& first);
  void check_width(const CsvCells& row) const;
  double number(const CsvCells& row, size_t cell, const CellFormat& format) const;
  float target(const CsvCells& row, size_t index) const;
  // `flags` of the row; null: they are not wanted.
  void encode(const CsvCells& row, size_t column, double*& out, std::string* flags) const;
  void encode_category(const CsvCells& row, size_t column, double* out, std::string* flags) const;
  [[noreturn]] void fail_cell(const CsvCells& row, size_t cell, CellProblem::Kind kind,
                              const std::string& what) const;

  CsvRecords records_;
  CsvHead head_;
  std::optional<TableSchema> schema_;
  CsvEncoding encoding_;
  std::vector<size_t> cells_;  // where this file has the encoding's columns
  std::vector<CellFormat> formats_;
  std::vector<std::map<std::string, size_t, std::less<>>> category_index_;
  std::map<std::string, size_t, std::less<>> class_index_;
  std::vector<size_t> target_cells_;
  std::vector<CellFormat> target_formats_;
  std::vector<std::string> feature_names_;
  std::vector<std::string> target_names_;
  RowNotes notes_;  // of the rows that were read last
  Oddities odd_;
  std::vector<size_t> refused_;
  std::vector<CsvLine> lines_;  // that are read together
  bool exact_ = false;
  bool flagged_ = false;  // rows that differ from those that were learned from
  size_t threads_ = 1;
  size_t next_refused_ = 0;
  std::optional<size_t> size_;
  size_t rows_read_ = 0;
  size_t rows_passed_ = 0;  // with those that are refused
};

}  // namespace fcp
