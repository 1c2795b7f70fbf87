#include "fcp/data/prefetched_rows.h"

namespace fcp {

bool PrefetchedRows::next(size_t count, Rows& out) {
  if (prefetcher_ && asked_ != count) drop_prefetched();
  const bool some = prefetcher_ ? prefetcher_->next(out) : rows().next(count, out);
  served_ += out.x.rows();
  if (!some || served_ >= size().value_or(0)) {
    prefetcher_.reset();
  } else if (!prefetcher_ && in_order_ && out.x.values.size() >= large_) {
    asked_ = count;
    prefetcher_ = std::make_unique<Prefetcher<Rows>>(
        1, [this, count](Rows& item) { return rows().next(count, item); });
  }
  return some;
}

void PrefetchedRows::rewind() {
  prefetcher_.reset();
  rows().rewind();
  served_ = 0;
  in_order_ = true;
}

size_t PrefetchedRows::skip(size_t count) {
  drop_prefetched();
  in_order_ = false;
  const size_t done = rows().skip(count);
  served_ += done;
  return done;
}

void PrefetchedRows::drop_prefetched() {
  if (!prefetcher_) return;
  prefetcher_.reset();
  rows().rewind();
  rows().skip(served_);
}

}  // namespace fcp
