#include "fcp/base/blas_threads.h"

#include <mutex>

#include <dlfcn.h>

namespace fcp {
namespace {

struct SingleUse {
  std::mutex mutex;
  int users = 0;
  int before = 0;
};

SingleUse& single_use() {
  static SingleUse use;
  return use;
}

}  // namespace

void set_blas_threads(int threads) {
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set != nullptr && threads > 0) set(threads);
}

int blas_threads() {
  const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return get == nullptr ? 0 : get();
}

SingleBlasThread::SingleBlasThread() {
  SingleUse& use = single_use();
  const std::lock_guard lock(use.mutex);
  if (use.users++ > 0) return;
  use.before = blas_threads();
  set_blas_threads(1);
}

SingleBlasThread::~SingleBlasThread() {
  SingleUse& use = single_use();
  const std::lock_guard lock(use.mutex);
  if (--use.users == 0) set_blas_threads(use.before);
}

}  // namespace fcp
