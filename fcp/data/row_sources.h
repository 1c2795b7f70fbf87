// Rows of another source whose next batch is read by a thread of its own while the last one is
// worked on: .npy files. For sources that know how many rows they have.
//
// Small batches are read when they are asked for: a thread would cost more than they do. So are all
// batches once rows have been skipped, as ranks do that share them, until the next rewind.
// Memory: a second batch. Tested by tests/data/row_sources_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/prefetch.h"
#include "fcp/data/rows.h"

namespace fcp {

// A source in front of another: whatever is not changed is the other's.

class ForwardedRows : public RowSource {
 public:
  explicit ForwardedRows(std::unique_ptr<RowSource> rows) : rows_(std::move(rows)) {}

  bool next(size_t count, Rows& out) override { return rows_->next(count, out); }
  void rewind() override { rows_->rewind(); }
  size_t skip(size_t count) override { return rows_->skip(count); }
  bool can_prefetch() const override { return rows_->can_prefetch(); }
  std::optional<size_t> size() const override { return rows_->size(); }
  std::optional<size_t> usual_batch() const override { return rows_->usual_batch(); }
  const std::vector<std::string>& column_names() const override { return rows_->column_names(); }
  const std::vector<std::string>& target_names() const override { return rows_->target_names(); }
  const std::vector<int64_t>& row_shape() const override { return rows_->row_shape(); }
  size_t target_count() const override { return rows_->target_count(); }
  const CsvEncoding* encoding() const override { return rows_->encoding(); }
  const TableSchema* schema() const override { return rows_->schema(); }
  const SegmentTask* segmentation() const override { return rows_->segmentation(); }
  std::vector<std::string> notes() const override { return rows_->notes(); }
  std::vector<std::string> warnings() const override { return rows_->warnings(); }
  const std::vector<std::string>& class_names() const override { return rows_->class_names(); }

 protected:
  RowSource& rows() { return *rows_; }

 private:
  std::unique_ptr<RowSource> rows_;
};

class PrefetchedRows : public ForwardedRows {
 public:
  static constexpr size_t kLargeBatch = size_t{1} << 20;  // numbers

  // `large`: how many numbers a batch must have to be prefetched.
  explicit PrefetchedRows(std::unique_ptr<RowSource> rows, size_t large = kLargeBatch)
      : ForwardedRows(std::move(rows)), large_(large) {}

  bool next(size_t count, Rows& out) override;
  void rewind() override;
  size_t skip(size_t count) override;

  bool prefetching() const { return prefetcher_ != nullptr; }

 private:
  void drop_prefetched();  // and go back to where the next row is

  size_t large_;
  size_t served_ = 0;     // rows
  bool in_order_ = true;  // none were skipped
  size_t asked_ = 0;      // rows of a prefetched batch
  std::unique_ptr<Prefetcher<Rows>> prefetcher_;
};

// Rows that lie in several places: in files one after the other, as a set that was written in
// shards, or side by side in the entries of an archive.
//
// Tested by tests/data/rows_test.cc, tests/data/archive_rows_test.cc.

// One long list of rows. A batch may span files, so that batches are those of one file with all
// rows. `names`: of the parts, for an Error where the rows of two do not fit together.
std::unique_ptr<RowSource> join_rows(std::vector<std::unique_ptr<RowSource>> parts,
                                     const std::vector<std::string>& names);

// As open_rows; an Error names two files whose rows do not fit together.
std::unique_ptr<RowSource> join_files(const std::vector<std::string>& files,
                                      const std::string& target, const RowOptions& options);

// The shape of one row of each entry. An Error names an entry that is not there, has no rows, or
// has another number of them than the first.
std::vector<std::vector<int64_t>> archive_row_shapes(const std::string& archive,
                                                     const std::vector<std::string>& entries);

// An archive with one array per input of a network: entry `name` is [N, …] for the input of that
// name. The numbers of a row lie side by side in x [n, …], entry after entry. target: an entry of
// the archive, or an .npy as for open_rows; empty for none.
std::unique_ptr<RowSource> open_archive(const std::string& archive,
                                        const std::vector<std::string>& entries,
                                        const std::string& target, const RowOptions& options = {});

// Rows of a table in memory, with what is known of the file they come from.
// Tested by tests/fit/fit_test.cc.

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
