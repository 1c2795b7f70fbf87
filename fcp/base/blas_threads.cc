#include "fcp/base/blas_threads.h"

#include <algorithm>
#include <mutex>
#include <set>

#include <dlfcn.h>

namespace fcp {
namespace {

struct BlasLimits {
  std::mutex mutex;
  std::multiset<int> limits;
  int before = 0;
};

// Looked up once: a search through the two hundred libraries of a process takes 0.1 ms.
struct OpenBlas {
  void (*set)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT,
                                                           "openblas_set_num_threads"));
  int (*get)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
};

const OpenBlas& open_blas() {
  static const OpenBlas found;
  return found;
}

BlasLimits& blas_limits() {
  static BlasLimits limits;
  return limits;
}

}  // namespace

void set_blas_threads(int threads) {
  if (open_blas().set != nullptr && threads > 0) open_blas().set(threads);
}

int blas_threads() { return open_blas().get == nullptr ? 0 : open_blas().get(); }

BlasThreadLimit::BlasThreadLimit(int most) : most_(most) {
  BlasLimits& all = blas_limits();
  const std::lock_guard lock(all.mutex);
  if (all.limits.empty()) all.before = blas_threads();
  all.limits.insert(most);
  set_blas_threads(std::min(*all.limits.begin(), all.before));
}

BlasThreadLimit::~BlasThreadLimit() {
  BlasLimits& all = blas_limits();
  const std::lock_guard lock(all.mutex);
  all.limits.erase(all.limits.find(most_));
  set_blas_threads(all.limits.empty() ? all.before : std::min(*all.limits.begin(), all.before));
}

}  // namespace fcp
