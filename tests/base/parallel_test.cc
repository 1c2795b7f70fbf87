#include "fcp/base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/no_threads.h"

namespace fcp {
namespace {

TEST(ParallelRows, EveryRowOnce) {
  for (const size_t rows : {0, 1, 7, 100, 1001}) {
    for (const size_t threads : {0, 1, 3, 8}) {
      std::vector<int> seen(rows);
      std::atomic<size_t> shares = 0;
      parallel_rows(rows, 10, threads, [&](size_t first, size_t last) {
        ++shares;
        for (size_t row = first; row < last; ++row) ++seen[row];
      });
      EXPECT_EQ(seen, std::vector<int>(rows, 1)) << rows << " rows, " << threads << " threads";
      EXPECT_LE(shares, std::max<size_t>(1, std::min(rows / 10, threads)));
    }
  }
}

TEST(ParallelRows, ThreadsThatCannotStartLeaveTheirRowsToTheCaller) {
  const NoThreads none;
  ASSERT_THROW(std::thread([] {}), std::system_error);
  std::vector<int> seen(100);
  const auto caller = std::this_thread::get_id();
  parallel_rows(100, 1, 4, [&](size_t first, size_t last) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    for (size_t row = first; row < last; ++row) ++seen[row];
  });
  EXPECT_EQ(seen, std::vector<int>(100, 1));
}

TEST(ParallelRows, ErrorsComeBack) {
  const auto work = [](size_t first, size_t) {
    if (first > 0) throw std::runtime_error("in a share");
  };
  EXPECT_THROW(parallel_rows(100, 1, 4, work), std::runtime_error);
}

}  // namespace
}  // namespace fcp
