#include "fcp/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include <dlfcn.h>

namespace fcp {
namespace {

std::atomic<size_t> usual_thread_count = 1;

}  // namespace

size_t usual_threads() { return usual_thread_count; }

void set_usual_threads(size_t threads) { usual_thread_count = std::max<size_t>(1, threads); }

void parallel_rows(size_t rows, size_t least, size_t threads,
                   const std::function<void(size_t first, size_t last)>& work) {
  const size_t shares =
      std::clamp<size_t>(rows / std::max<size_t>(1, least), 1, std::max<size_t>(1, threads));
  if (shares == 1) return work(0, rows);
  std::vector<std::exception_ptr> errors(shares);
  const auto run = [&](size_t share) {
    try {
      work(rows * share / shares, rows * (share + 1) / shares);
    } catch (...) {
      errors[share] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(shares - 1);
  try {
    for (size_t share = 1; share < shares; ++share) others.emplace_back(run, share);
  } catch (const std::system_error&) {
    // No more threads are to be had: this one does the rest.
  }
  run(0);
  for (size_t share = others.size() + 1; share < shares; ++share) run(share);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

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
