#include "fcp/base/memory.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <malloc.h>

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

namespace {

// "max", or −1 of version 1, is no number here.
std::optional<double> number_in(std::istream& stream) {
  double number = 0;
  if (stream >> number && number >= 0) return number;
  return std::nullopt;
}

std::optional<double> number_of(const std::string& path) {
  std::ifstream file(path);
  return number_in(file);
}

// Pages of files that the system gives away when memory is wanted.
double reclaimable(const std::string& folder, bool second) {
  std::ifstream file(folder + "/memory.stat");
  const std::string wanted = second ? "inactive_file" : "total_inactive_file";
  std::string key;
  for (double bytes = 0; file >> key >> bytes;) {
    if (key == wanted) return bytes;
  }
  return 0;
}

// The folders of a group and of those above it, up to the mount; a group that is outside of what
// is mounted here, as in a container, is looked for at the mount itself.
std::vector<std::string> folders(const std::string& mount, std::string group) {
  std::vector<std::string> all;
  while (!group.empty() && group != "/") {
    all.push_back(mount + group);
    group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  all.push_back(mount);
  return all;
}

// By each line of /proc/self/cgroup, "4:memory:/path" or "0::/path": the folders of that
// controller; "" is version 2.
void each_folder(const ControlGroupFiles& files, const std::string& controller,
                 const std::function<void(const std::string& folder, bool second)>& take) {
  std::ifstream groups(files.groups);
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), last = line.find(':', first + 1);
    if (first == std::string::npos || last == std::string::npos) continue;
    const std::string names = line.substr(first + 1, last - first - 1);
    const bool second = names.empty();
    std::istringstream list(names);
    bool has = second;
    for (std::string name; std::getline(list, name, ',');) has = has || name == controller;
    if (!has) continue;
    const std::string mount = second ? files.mounts : files.mounts + "/" + names;
    for (const std::string& folder : folders(mount, line.substr(last + 1))) take(folder, second);
  }
}

void keep_smaller(std::optional<double>& least, double found) {
  least = least ? std::min(*least, found) : found;
}

}  // namespace

std::optional<size_t> processor_limit(const ControlGroupFiles& files) {
  std::optional<double> least;
  each_folder(files, "cpu", [&](const std::string& folder, bool second) {
    std::optional<double> quota, period;
    if (second) {
      std::ifstream file(folder + "/cpu.max");
      quota = number_in(file);
      if (quota) period = number_in(file);
    } else {
      quota = number_of(folder + "/cpu.cfs_quota_us");
      period = number_of(folder + "/cpu.cfs_period_us");
    }
    if (quota && period && *period > 0) keep_smaller(least, *quota / *period);
  });
  if (!least) return std::nullopt;
  return std::max<size_t>(1, static_cast<size_t>(std::ceil(*least)));
}

std::optional<size_t> memory_left(const ControlGroupFiles& files) {
  constexpr double kNoLimit = 0x1p60;  // version 1 writes almost 2^63 where there is none
  std::optional<double> least;
  each_folder(files, "memory", [&](const std::string& folder, bool second) {
    const auto most = number_of(folder + (second ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto used = number_of(folder + (second ? "/memory.current" : "/memory.usage_in_bytes"));
    if (!most || *most >= kNoLimit) return;
    const double held = std::max(0.0, used.value_or(0) - reclaimable(folder, second));
    keep_smaller(least, std::max(0.0, *most - held));
  });
  if (!least) return std::nullopt;
  return static_cast<size_t>(*least);
}

}  // namespace fcp
