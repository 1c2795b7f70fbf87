#include "fcp/data/ahead_rows.h"

#include <system_error>
#include <utility>

namespace fcp {

bool AheadRows::next(size_t count, Rows& out) {
  if (ahead_.valid() && asked_ != count) drop_ahead();
  bool some = false;
  if (ahead_.valid()) {
    some = ahead_.get();
    std::swap(out, spare_);
  } else {
    some = rows().next(count, out);
  }
  served_ += out.x.rows();
  const bool more = some && served_ < size().value_or(0);
  if (more && in_order_ && out.x.values.size() >= large_) read_ahead(count);
  return some;
}

void AheadRows::rewind() {
  if (ahead_.valid()) ahead_.wait();
  ahead_ = {};
  rows().rewind();
  served_ = 0;
  in_order_ = true;
}

size_t AheadRows::skip(size_t count) {
  drop_ahead();
  in_order_ = false;
  const size_t done = rows().skip(count);
  served_ += done;
  return done;
}

void AheadRows::read_ahead(size_t count) {
  asked_ = count;
  try {
    ahead_ = std::async(std::launch::async, [this, count] { return rows().next(count, spare_); });
  } catch (const std::system_error&) {
    // No thread is to be had: the batch is read when it is asked for.
  }
}

void AheadRows::drop_ahead() {
  if (!ahead_.valid()) return;
  ahead_.wait();
  ahead_ = {};
  rows().rewind();
  rows().skip(served_);
}

}  // namespace fcp
