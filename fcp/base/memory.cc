#include "fcp/base/memory.h"

#include <fstream>
#include <limits>
#include <string>

#include <malloc.h>

namespace fcp {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  size_t kilobytes = 0;
  for (std::string line; file >> key >> kilobytes; std::getline(file, line)) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

}  // namespace fcp
