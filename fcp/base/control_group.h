// What a container or a unit of systemd may use of the machine: the limits of the Linux control
// groups in which this process is, of version 2 or 1. /proc/meminfo and the number of processors
// tell of the whole machine; who goes by them is killed in a container, or throttled.
// Tested by tests/base/control_group_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace fcp {

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
