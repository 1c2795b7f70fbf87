// What is wrong with a table: every kind of problem of every column, with the first place where it
// was found and how often, as one message. Tested by tests/data/csv_test.cc.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"

namespace fcp {

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

}  // namespace fcp
