// One thread of libtorch and OpenBLAS while in scope, where `wanted`: a step that is too short to
// be shared gains nothing from a second thread, and waits for it on a busy machine.
#pragma once

#include <optional>

#include <ATen/Parallel.h>

#include "fcp/base/blas_threads.h"

namespace fcp {

class SingleThread {
 public:
  explicit SingleThread(bool wanted = true) : before_(at::get_num_threads()) {
    if (!wanted) return;
    at::set_num_threads(1);
    blas_.emplace();
  }
  ~SingleThread() {
    if (blas_) at::set_num_threads(before_);
  }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
  std::optional<SingleBlasThread> blas_;
};

}  // namespace fcp
