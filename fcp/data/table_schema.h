// What the columns of a CSV file are: inferred in one pass over it.
// ColumnSummary says the rules.
//
// Tested by tests/data/table_schema_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/data/csv_head.h"
#include "fcp/data/number.h"
#include "fcp/data/text_encoding.h"

namespace fcp {

struct TableColumn {
  std::string name{};
  CellFormat format{};
  bool target = false;
  bool dropped = false;  // the user said so
  std::string why{};     // a column that is not read: what it is
  size_t missing = 0;    // cells
  size_t distinct = 0;   // values, among the first 20,000 cells that are not missing
};

struct TableSchema {
  CsvHead head;  // its names are unique
  size_t rows = 0;
  std::vector<TableColumn> columns{};  // all of the file
  bool few_whole_numbers = false;      // the target may be classes
  std::vector<std::string> notes{};    // what was left out or renamed, a line each
};

struct SchemaOptions {
  char separator = 0;
  CsvHeader header = CsvHeader::kAuto;
  std::vector<std::string> drop{};
  std::vector<std::string> categorical{};
  std::map<std::string, std::string> types{};  // a column's format by its name: it is not inferred
  std::vector<std::string> missing{};          // cells that stand for no value besides the usual
  TextEncoding text_encoding = TextEncoding::kUtf8;
};

// target: columns, as in csv.h; empty for none. Rows of another width are passed over. An Error
// where two columns have one name.
TableSchema find_schema(const std::string& path, const std::string& target,
                        const SchemaOptions& options = {});

// A table for people: column, type, missing, values, and what becomes of it. `target`: what the
// target is taken for.
std::string schema_text(const TableSchema& schema, const std::string& target = "target");

// "a=date:dmy,b=drop" as a map; an OptionError `schema` where it is something else.
std::map<std::string, std::string> parse_types(const std::string& text);

// What is wrong with a table: every kind of problem of every column, with the first place where it
// was found and how often, as one message. Tested by tests/data/csv_test.cc.

// One cell, or a row of another width, that cannot be read.
class CellProblem : public Error {
 public:
  enum class Kind { kNone, kWidth, kMissing, kNotThis, kTooLarge, kInfinite };

  CellProblem() : Error("") {}
  CellProblem(const std::string& message, std::string where, size_t cell, Kind kind)
      : Error(message), where_(std::move(where)), cell_(cell), kind_(kind) {}

  const std::string& where() const { return where_; }  // the message without the file
  size_t cell() const { return cell_; }
  Kind kind() const { return kind_; }

 private:
  std::string where_;
  size_t cell_ = 0;
  Kind kind_ = Kind::kNone;
};

// All problems of a file in one message.
class TableError : public Error {
 public:
  TableError(const std::string& message, std::vector<std::string> columns)
      : Error(message), text_columns_(std::move(columns)) {}

  // Columns of the types that were inferred here in which other texts stand.
  const std::vector<std::string>& text_columns() const { return text_columns_; }

 private:
  std::vector<std::string> text_columns_;
};

class TableProblems {
 public:
  void add(const CellProblem& problem);

  bool none() const { return found_.empty(); }
  size_t rows = 0;  // that have problems

  // "file: the problem", or "file: 3 problems in 12 rows: …; …".
  std::string text(const std::string& file) const;
  // The cells of these problems, ascending.
  std::vector<size_t> cells(CellProblem::Kind kind) const;

 private:
  struct Found {
    std::string first;
    size_t count = 0;
  };
  std::map<std::pair<size_t, CellProblem::Kind>, Found> found_;
  std::vector<std::pair<size_t, CellProblem::Kind>> order_;
};

// What the cells of one column look like, gathered in one pass, and the kind of column that they
// make. Memory does not grow with the file: distinct cells are told apart among the first rows.
//
// The rules, of the cells that are not missing:
//   boolean     all are true, false, yes or no
//   number      nine in ten or more are numbers of one style; what is not is a problem of the file.
//               With no decimals, an identifier where each is one more than the one before it, or
//               where they ascend and at least half of all up to the last are there, or where all
//               differ and the name is id, rownames or index, or ends in _id or Id. With no
//               decimals they are codes, which count as texts, where one in a hundred has a zero in
//               front or is like 98115-4820, or where the name is zip, code, phone or the like
//   date        nine in ten or more are dates; numbers like 20240331 where all are
//   constant    there is no value, or one value and nothing is missing
//   identifier  texts that all differ, of few words
//   text        the same of many words, or half of the cells or more differ
//   category    all else
//
// Tested by tests/data/table_schema_test.cc.

class ColumnSummary {
 public:
  explicit ColumnSummary(std::string name) : name_(std::move(name)) {}

  void add(std::string_view cell);

  // Whether the numbers are written with a decimal comma beyond doubt.
  bool has_comma() const { return comma_ > 0 && point_ == 0; }
  // `commas`: where 1,500 could be either, the comma is a decimal one. `why` says what decided.
  CellFormat format(bool commas, std::string& why) const;
  // The same without identifiers and constants, for targets.
  CellFormat target_format(bool commas) const;

  size_t missing() const { return missing_; }
  size_t distinct() const { return hashes_.size(); }  // among the first kCounted cells
  // All are whole numbers, and these differ in so few values that they may be classes.
  bool few_whole_numbers() const;

  static constexpr size_t kCounted = 20000;

 private:
  size_t count() const { return cells_ - missing_; }
  CellFormat number_format(bool commas) const;
  bool counts_rows() const;
  bool named_id() const;
  bool are_codes() const;
  CellFormat text_format(std::string& why) const;

  std::string name_;
  size_t cells_ = 0, missing_ = 0;
  size_t plain_ = 0;                           // plain numbers
  size_t point_ = 0, comma_ = 0, either_ = 0;  // other numbers, by the styles that read them
  size_t whole_ = 0;                           // plain ones without decimals,
  size_t steps_ = 0, rises_ = 0;               // one or some more than the one before
  size_t codes_ = 0;                           // 00123, 98115-4820
  size_t compact_dates_ = 0;                   // 20240331
  size_t booleans_ = 0;
  size_t dates_ = 0, day_first_ = 0, month_first_ = 0;  // dates; of which in one order alone
  size_t words_ = 0;
  size_t told_apart_ = 0;
  double last_ = 0;
  std::unordered_set<uint64_t> hashes_;
};

// What a column had in the training rows, and whether a new cell is of another kind: the coverage
// guarantee speaks of rows like those of calibration, and not of what was never seen.
//
//   missing   a cell without a value, where every training row had one
//   unseen    a category that no training row had; rare ones, which are read together, are not
//   range     a number beyond the range of the training rows by more than a quarter of its width
//
// Rare categories are kept as hashes, so that a network does not carry their texts.
//
// Tested by tests/data/table_schema_test.cc and csv_types_test.cc.

struct ColumnFacts {
  bool missing = false;                                    // some cell had no value
  double low = std::numeric_limits<double>::infinity();    // of numbers and dates; above `high`:
  double high = -std::numeric_limits<double>::infinity();  // there were none
  std::vector<uint64_t> rare{};                            // hashes of categories, ascending
  bool more = false;  // there were more categories than were told apart

  // The numbers that are not far from those of the training rows; all, where there were none.
  std::pair<double, double> usual() const;
  bool is_far(double value) const;
  bool has_rare(std::string_view category) const;
  friend bool operator==(const ColumnFacts&, const ColumnFacts&) = default;
};

uint64_t category_hash(std::string_view category);

enum class Novelty { kNone, kMissing, kUnseen, kRange };

// "missing:carat".
std::string novelty_flag(Novelty novelty, const std::string& column);
// Adds it to the flags of a row, which '|' separates.
void add_flag(const std::string& flag, std::string& flags);

// The rows of a file that have what no training row had.
class NoveltyCounts {
 public:
  // The flags of one row.
  void add(const std::string& flags);
  void add(const NoveltyCounts& more);

  bool none() const { return rows_ == 0; }
  // "3 of 50 rows have what no training row had (missing: carat in 2; …): the coverage guarantee
  // does not extend to them".
  std::string text(size_t of) const;

 private:
  size_t rows_ = 0;
  std::map<std::string, size_t> flags_;  // how many rows have each
};

}  // namespace fcp
