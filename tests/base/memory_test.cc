#include "fcp/base/memory.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

long faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// A loop that makes and frees eight buffers of a megabyte asks the system for the pages of one
// round, not of all.
TEST(Memory, KeepsWhatWasFreed) {
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not glibc's own heap";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "not glibc's own heap";
#endif
#endif
  keep_freed_memory();
  constexpr size_t kBytes = size_t{1} << 20, kPage = 4096;
  constexpr long kRounds = 50, kBuffers = 8;
  const long before = faults();
  size_t sum = 0;
  for (long round = 0; round < kRounds; ++round) {
    const std::vector<std::vector<char>> buffers(kBuffers, std::vector<char>(kBytes));
    for (const std::vector<char>& buffer : buffers) {
      for (size_t i = 0; i < kBytes; i += kPage) sum += static_cast<size_t>(buffer[i]);
    }
  }
  EXPECT_EQ(sum, 0u);
  EXPECT_LT(faults() - before, kRounds * kBuffers * static_cast<long>(kBytes / kPage) / 5);
}

}  // namespace
namespace {

// A machine's files in a folder.
class Machine {
 public:
  explicit Machine(const std::string& groups) { put("groups", groups); }
  void put(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = folder_.path(path);
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  ControlGroupFiles files() const { return {folder_.path("mounts"), folder_.path("groups")}; }

 private:
  Folder folder_;
};

TEST(ControlGroup, ReadsVersionTwo) {
  const Machine machine("0::/a.slice/fcp.service\n");
  EXPECT_FALSE(processor_limit(machine.files()));
  EXPECT_FALSE(memory_left(machine.files()));
  machine.put("mounts/a.slice/fcp.service/cpu.max", "max 100000\n");
  machine.put("mounts/a.slice/fcp.service/memory.max", "max\n");
  EXPECT_FALSE(processor_limit(machine.files()));
  EXPECT_FALSE(memory_left(machine.files()));
  machine.put("mounts/a.slice/cpu.max", "150000 100000\n");  // that of a group above counts, too
  EXPECT_EQ(processor_limit(machine.files()), 2u);
  machine.put("mounts/a.slice/fcp.service/cpu.max", "20000 100000\n");
  EXPECT_EQ(processor_limit(machine.files()), 1u);
  machine.put("mounts/a.slice/fcp.service/memory.max", "1000000\n");
  machine.put("mounts/a.slice/fcp.service/memory.current", "400000\n");
  EXPECT_EQ(memory_left(machine.files()), 600'000u);
  machine.put("mounts/a.slice/fcp.service/memory.stat", "anon 7\ninactive_file 100000\n");
  EXPECT_EQ(memory_left(machine.files()), 700'000u);
  machine.put("mounts/a.slice/memory.max", "500000\n");
  machine.put("mounts/a.slice/memory.current", "600000\n");
  EXPECT_EQ(memory_left(machine.files()), 0u);
}

// In a container the group's own folder is what is mounted.
TEST(ControlGroup, ReadsTheMountOfAContainer) {
  const Machine machine("0::/../outside\n");
  machine.put("mounts/cpu.max", "400000 100000\n");
  machine.put("mounts/memory.max", "2048\n");
  EXPECT_EQ(processor_limit(machine.files()), 4u);
  EXPECT_EQ(memory_left(machine.files()), 2048u);
}

TEST(ControlGroup, ReadsVersionOne) {
  const Machine machine("5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/\n");
  machine.put("mounts/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  machine.put("mounts/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  machine.put("mounts/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(processor_limit(machine.files()));
  EXPECT_FALSE(memory_left(machine.files()));
  machine.put("mounts/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000\n");
  machine.put("mounts/memory/docker/x/memory.limit_in_bytes", "1000\n");
  machine.put("mounts/memory/docker/x/memory.usage_in_bytes", "100\n");
  EXPECT_EQ(processor_limit(machine.files()), 3u);
  EXPECT_EQ(memory_left(machine.files()), 900u);
}

TEST(ControlGroup, SaysNothingWhereThereIsNothing) {
  const ControlGroupFiles none{"/no/such/folder", "/no/such/file"};
  EXPECT_FALSE(processor_limit(none));
  EXPECT_FALSE(memory_left(none));
}

}  // namespace
}  // namespace fcp
