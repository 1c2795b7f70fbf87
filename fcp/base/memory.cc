#include "fcp/base/memory.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <malloc.h>

#include "fcp/base/control_group.h"

namespace fcp {
namespace {

std::atomic<size_t> given_budget = 0;
thread_local size_t sharers_here = 1;

}  // namespace

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

size_t available_memory() {
  const std::optional<size_t> left = memory_left();
  std::ifstream file("/proc/meminfo");
  std::string key;
  size_t kilobytes = 0;
  for (std::string line; file >> key >> kilobytes; std::getline(file, line)) {
    if (key != "MemAvailable:") continue;
    return std::max<size_t>(1, std::min(kilobytes * 1024, left.value_or(kilobytes * 1024)));
  }
  return left.value_or(0);
}

size_t memory_budget() {
  constexpr size_t kWhereUnknown = size_t{2} << 30;
  static const size_t half = available_memory() > 0 ? available_memory() / 2 : kWhereUnknown;
  const size_t given = given_budget;
  return given > 0 ? given : half;
}

void set_memory_budget(size_t bytes) { given_budget = bytes; }

MemoryShare::MemoryShare(size_t sharers) : before_(sharers_here) { sharers_here *= sharers; }
MemoryShare::~MemoryShare() { sharers_here = before_; }

size_t memory_sharers() { return sharers_here; }

}  // namespace fcp
