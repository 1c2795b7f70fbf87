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
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "fcp/data/cell_format.h"

namespace fcp {

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

}  // namespace fcp
