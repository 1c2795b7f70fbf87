// How the process uses memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace fcp {

// Tells the allocator to keep what is freed. By default glibc gives large blocks back to the
// system at once and asks for them again, zeroed, at the next layer of a network.
void keep_freed_memory();

// Bytes that can be allocated without swapping, in a container by its limit; 0: nobody says.
size_t available_memory();

// Bytes that the tensors of a running network may take together: a small file can ask for any
// number of them. By default half of what is available when it is first asked, or 2 GiB where the
// system does not say; 0 gives the default back. Of the process.
size_t memory_budget();
void set_memory_budget(size_t bytes);

// While in scope, this thread is one of `sharers` that work side by side. Bounds, and rows that run
// one by one, then keep to a part of the memory each; one run of a network may still take all of
// the budget, but has only a share of the rows to take it for.
class MemoryShare {
 public:
  explicit MemoryShare(size_t sharers);
  ~MemoryShare();
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

 private:
  size_t before_;
};

size_t memory_sharers();  // 1 outside of any share

// What a container or a unit of systemd may use of the machine: the limits of the Linux control
// groups in which this process is, of version 2 or 1. /proc/meminfo and the number of processors
// tell of the whole machine; who goes by them is killed in a container, or throttled.
// Tested by tests/base/memory_test.cc.

// Where the system says what it does; other folders than the machine's own are for tests.
struct ControlGroupFiles {
  std::string mounts = "/sys/fs/cgroup";
  std::string groups = "/proc/self/cgroup";
};

// Processors' worth of time, rounded up: of 1.5 processors two threads make the most. None where
// there is no limit.
std::optional<size_t> processor_limit(const ControlGroupFiles& files = {});

// Bytes that are left of the limit. None where there is no limit.
std::optional<size_t> memory_left(const ControlGroupFiles& files = {});

}  // namespace fcp
