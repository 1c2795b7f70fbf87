// Rows of another source, of which the next batch is read on a thread of its own while the last one
// is worked on. For sources that know the number of their rows, and whose row_place and row_name do
// not depend on what is being read: .npy files.
//
// Small batches are read as they are asked for: a thread would cost more than they do. So are all
// batches once rows have been skipped, as ranks do that share them, until the next rewind. An error
// of a batch is thrown when the batch is asked for. Memory: a second batch.
// Tested by tests/data/ahead_rows_test.cc.
#pragma once

#include <cstddef>
#include <future>
#include <memory>

#include "fcp/data/forwarded_rows.h"

namespace fcp {

class AheadRows : public ForwardedRows {
 public:
  static constexpr size_t kLargeBatch = size_t{1} << 20;  // numbers

  // `large`: how many numbers a batch must have to be read ahead.
  explicit AheadRows(std::unique_ptr<RowSource> rows, size_t large = kLargeBatch)
      : ForwardedRows(std::move(rows)), large_(large) {}

  bool next(size_t count, Rows& out) override;
  void rewind() override;
  size_t skip(size_t count) override;

  bool reading_ahead() const { return ahead_.valid(); }

 private:
  void read_ahead(size_t count);
  void drop_ahead();  // and go back to where the next row is

  size_t large_;
  size_t served_ = 0;     // rows
  bool in_order_ = true;  // none were skipped
  size_t asked_ = 0;      // of the batch that is read ahead
  Rows spare_;
  std::future<bool> ahead_;  // last: waited for before the rest goes
};

}  // namespace fcp
