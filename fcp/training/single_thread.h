// One thread while in scope, where `wanted`: a step that is too short to be shared gains nothing from
// a second thread, and waits for it on a busy machine.
#pragma once

#include <ATen/Parallel.h>

#include "fcp/base/blas_threads.h"

namespace fcp {

// Of libtorch.
class SingleThread {
 public:
  explicit SingleThread(bool wanted) : before_(at::get_num_threads()) {
    if (wanted) at::set_num_threads(1);
  }
  ~SingleThread() { at::set_num_threads(before_); }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

// Of OpenBLAS.
class SingleBlasThread {
 public:
  explicit SingleBlasThread(bool wanted) : before_(blas_threads()) {
    if (wanted) set_blas_threads(1);
  }
  ~SingleBlasThread() { set_blas_threads(before_); }
  SingleBlasThread(const SingleBlasThread&) = delete;
  SingleBlasThread& operator=(const SingleBlasThread&) = delete;

 private:
  int before_;
};

}  // namespace fcp
