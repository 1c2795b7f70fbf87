#include "fcp/base/memory.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

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
}  // namespace fcp
