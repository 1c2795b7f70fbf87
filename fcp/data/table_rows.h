// Rows of a table in memory, with what is known of the file they come from.
// Tested by tests/fit/fit_test.cc.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fcp/data/rows.h"

namespace fcp {

// The rows `numbers` of all rows of a source that was read whole. The source tells names, encoding
// and classes, and must outlive this.
class TableRows : public RowSource {
 public:
  TableRows(const RowSource& whole, const Rows& all, std::vector<size_t> numbers)
      : whole_(whole),
        numbers_(std::move(numbers)),
        x_(take_rows(all.x, numbers_)),
        y_(take_rows(all.y, numbers_)) {
    all_.parts = all.parts;
    all_.names = all.names;
    all_.notes.lines = all.notes.lines;
  }

  bool next(size_t count, Rows& out) override {
    const size_t first = next_, some = std::min(count, numbers_.size() - first);
    next_ += some;
    out.first_row = first;
    out.parts = {{0, [this, first](size_t i) { return all_.place(numbers_.at(first + i)); }}};
    out.names = [this, first](size_t i) { return all_.name(numbers_.at(first + i)); };
    out.x = slice_rows(x_, first, some);
    out.y = slice_rows(y_, first, some);
    return some > 0;
  }
  void rewind() override { next_ = 0; }
  std::optional<size_t> size() const override { return numbers_.size(); }
  const std::vector<std::string>& column_names() const override { return whole_.column_names(); }
  const std::vector<std::string>& target_names() const override { return whole_.target_names(); }
  const std::vector<int64_t>& row_shape() const override { return whole_.row_shape(); }
  size_t target_count() const override { return whole_.target_count(); }
  const CsvEncoding* encoding() const override { return whole_.encoding(); }
  const std::vector<std::string>& class_names() const override { return whole_.class_names(); }

  const Array& y() const { return y_; }

 private:
  const RowSource& whole_;
  std::vector<size_t> numbers_;
  Rows all_;  // where they stand
  Array x_, y_;
  size_t next_ = 0;
};

}  // namespace fcp
