// Rows of another source whose next batch is read by a thread of its own while the last one is
// worked on: .npy files. For sources that know how many rows they have.
//
// Small batches are read when they are asked for: a thread would cost more than they do. So are all
// batches once rows have been skipped, as ranks do that share them, until the next rewind.
// Memory: a second batch. Tested by tests/data/prefetched_rows_test.cc.
#pragma once

#include <cstddef>
#include <memory>

#include "fcp/base/prefetch.h"
#include "fcp/data/forwarded_rows.h"

namespace fcp {

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

}  // namespace fcp
