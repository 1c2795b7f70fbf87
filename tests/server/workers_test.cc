#include "apps/server/workers.h"

#include <atomic>

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(Workers, DoAllInOrderAndThenEnd) {
  std::vector<int> done;
  Workers one(1);
  for (int i = 0; i < 1000; ++i) one.put([&done, i] { done.push_back(i); });
  one.end();
  ASSERT_EQ(done.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
  one.put([&] { done.push_back(-1); });  // by this thread
  EXPECT_EQ(done.back(), -1);
}

// Two that wait for each other only end where both are worked on at once.
TEST(Workers, WorkAtTheSameTime) {
  std::atomic<int> here = 0;
  Workers two(2);
  for (int i = 0; i < 2; ++i) {
    two.put([&] {
      ++here;
      while (here < 2) std::this_thread::yield();
    });
  }
  two.end();
  EXPECT_EQ(here, 2);
}

}  // namespace
}  // namespace fcp
