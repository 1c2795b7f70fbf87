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

BlasLimits& blas_limits() {
  static BlasLimits limits;
  return limits;
}

}  // namespace

// Looking a name up in hundreds of libraries takes tens of microseconds.
void set_blas_threads(int threads) {
  static const auto set =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set != nullptr && threads > 0) set(threads);
}

int blas_threads() {
  static const auto get =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return get == nullptr ? 0 : get();
}

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
