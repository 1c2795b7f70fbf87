// CSV files as features x and targets y.
//
// Text columns named `categorical` become one-hot columns, missing values are refused or replaced
// by the column's mean; what was learned for that from the training file is a CsvEncoding, which
// applied to another file gives the same columns in the same order.
//
// A column is named by its header, or by its 0-based index (negative: from the end); a header
// that reads like an index wins over the index. Where the header is not said to be there or not,
// the first row is a header when it has text (a cell neither a number nor missing) and either
// no number at all, or text that stands above a number or a missing value in the second row.
//
// Tested by tests/data/csv_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/csv_records.h"

namespace fcp {

enum class CsvHeader { kAuto, kYes, kNo };

// How the columns of the training file became features. Store it with the network: a file to
// predict is read through it. All vectors have one entry for each feature column of the file.
struct CsvEncoding {
  bool header = true;  // were the columns matched by name? If not, by position
  size_t width = 0;    // cells of a row of the training file, targets and dropped columns included
  std::vector<std::string> columns = {};  // names; without a header their positions as text
  std::vector<size_t> positions = {};     // in the training file
  // In order of first appearance; empty for a column of numbers. Numbers count as text: "1" and
  // "1.0" are two categories.
  std::vector<std::vector<std::string>> categories = {};
  // What a missing number becomes, which may be NaN; empty: missing values are refused. 0 for a
  // categorical column.
  std::vector<float> means = {};

  // Names of the features: a column of numbers keeps its name, a category is "column=category".
  std::vector<std::string> feature_names() const;
  size_t feature_count() const;
};

struct CsvOptions {
  char separator = 0;  // 0: detected among , ; tab |
  CsvHeader header = CsvHeader::kAuto;
  std::vector<std::string> drop = {};         // columns that are neither features nor targets
  std::vector<std::string> categorical = {};  // columns to one-hot
  bool impute = false;                        // missing features become the column's mean
  bool keep_missing = false;                  // … become NaN, in files that have some
  // Read through this encoding instead of learning one; drop, categorical, impute and keep_missing
  // are then not looked at. With headers the columns are found by name, in any order, and others
  // are ignored; without, a row must have as many cells as the training file or as there are
  // feature columns.
  std::optional<CsvEncoding> encoding = {};
};

class CsvReader {
 public:
  // target: a column, or several with commas between; empty for none. Missing targets are refused
  // always. Reads the file once beforehand where categories or means must be learned.
  CsvReader(const std::string& path, const std::string& target, const CsvOptions& options = {});

  // The next rows, at most `count`: x [n, features], y [n, targets] (empty without target). False
  // when there are none left.
  bool next(size_t count, Array& x, Array& y);
  // Passes over rows and returns how many; fewer than `count` at the end. Numbers are not read.
  size_t skip(size_t count);
  void rewind();

  const CsvEncoding& encoding() const { return encoding_; }
  const std::vector<std::string>& feature_names() const { return feature_names_; }
  const std::vector<std::string>& target_names() const { return target_names_; }
  // Rows of data; known when the file was read beforehand or has been read to its end.
  std::optional<size_t> size() const { return size_; }

 private:
  void read_head(CsvHeader wanted, const std::optional<CsvEncoding>& encoding);
  size_t find_column(const std::string& name, const std::string& role) const;
  void check_name(size_t cell) const;
  void find_targets(const std::string& target);
  void choose_columns(const CsvOptions& options);
  void match_columns();
  void learn(bool impute, bool keep_missing);
  bool next_row();
  float number(size_t cell) const;
  void encode(size_t column, float*& out) const;
  std::string all_columns() const;
  std::string column_text(size_t cell) const;
  [[noreturn]] void fail_cell(size_t cell, const std::string& what) const;

  CsvRecords records_;
  bool header_ = false;
  std::vector<std::string> names_;  // of all columns of this file; positions without header
  CsvEncoding encoding_;
  std::vector<size_t> cells_;  // where this file has the encoding's columns
  std::vector<bool> categorical_;
  std::vector<std::map<std::string, size_t, std::less<>>> category_index_;
  std::vector<size_t> target_cells_;
  std::vector<std::string> feature_names_;
  std::vector<std::string> target_names_;
  std::optional<size_t> size_;
  size_t rows_read_ = 0;
};

}  // namespace fcp
