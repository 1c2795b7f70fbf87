// Fewer threads of libtorch and OpenBLAS while in scope. The numbers of before come back with its
// end, and no thread is started.
#pragma once

#include <algorithm>
#include <optional>

#include <ATen/Parallel.h>

#include "fcp/base/parallel.h"

namespace fcp {

// At most `most` threads; 0: no limit.
class ThreadLimit {
 public:
  explicit ThreadLimit(int most) : before_(at::get_num_threads()) {
    if (most <= 0) return;
    at::set_num_threads(std::min(most, before_));
    blas_.emplace(most);
  }
  ~ThreadLimit() {
    if (blas_) at::set_num_threads(before_);
  }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
  std::optional<BlasThreadLimit> blas_;
};

// One thread where `wanted`: a step that is too short to be shared gains nothing from a second
// thread, and waits for it on a busy machine.
class SingleThread : ThreadLimit {
 public:
  explicit SingleThread(bool wanted = true) : ThreadLimit(wanted ? 1 : 0) {}
};

}  // namespace fcp
