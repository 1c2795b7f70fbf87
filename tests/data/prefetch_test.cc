#include "fcp/data/prefetch.h"

#include <atomic>
#include <chrono>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/support/no_threads.h"

namespace fcp {
namespace {

using testing::ElementsAre;

TEST(Prefetch, GivesItemsInOrderWhateverThreadIsFaster) {
  for (const size_t threads : {1, 2, 7}) {
    for (const size_t ahead : {1, 3, 100}) {
      Prefetch items(2, 60, 2, ahead, threads, [](size_t item, std::span<float> out) {
        std::this_thread::sleep_for(std::chrono::microseconds(item * 7919 % 300));
        out[0] = static_cast<float>(item);
        out[1] = -out[0];
      });
      for (size_t item = 2; item < 60; ++item) {
        std::vector<float> out(2);
        items.take(out);
        const auto number = static_cast<float>(item);
        ASSERT_THAT(out, ElementsAre(number, -number)) << threads << " threads, " << ahead;
      }
    }
  }
}

TEST(Prefetch, WorksAheadButNotFurtherThanAsked) {
  std::atomic<size_t> begun = 0;
  Prefetch items(0, 1000, 1, 5, 3, [&](size_t, std::span<float>) { ++begun; });
  const auto settle = [&](size_t expected) {
    for (int i = 0; i < 60000 && begun < expected; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time to go too far
    return begun.load();
  };
  EXPECT_EQ(settle(5), 5u);
  std::vector<float> out(1);
  items.take(out);
  items.take(out);
  EXPECT_EQ(settle(7), 7u);
}

TEST(Prefetch, TheConsumerMakesItemsWhereNoThreadStarts) {
  const NoThreads none;
  Prefetch items(3, 6, 1, 2, 2, [](size_t item, std::span<float> out) {
    if (item == 5) fail("item 5");
    out[0] = static_cast<float>(item);
  });
  std::vector<float> out(1);
  for (const float expected : {3.0f, 4.0f}) {
    items.take(out);
    EXPECT_EQ(out[0], expected);
  }
  EXPECT_THROW(items.take(out), Error);
  EXPECT_THROW(items.take(out), Error);
}

TEST(Prefetch, PassesOnWhatTheMakerThrows) {
  Prefetch items(0, 10, 1, 4, 2, [](size_t item, std::span<float> out) {
    if (item == 3) fail("item 3");
    out[0] = 1;
  });
  std::vector<float> out(1);
  for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(items.take(out));
  EXPECT_THROW(items.take(out), Error);
  EXPECT_THROW(items.take(out), Error);
}

TEST(Prefetch, MayBeLeftUnfinished) {
  for (int i = 0; i < 50; ++i) {
    Prefetch items(0, 100, 1, 8, 3, [](size_t, std::span<float>) {});
    if (i % 2 == 0) continue;
    std::vector<float> out(1);
    items.take(out);
  }
  const Prefetch none(4, 4, 1, 8, 2, [](size_t, std::span<float>) {});
}

}  // namespace
}  // namespace fcp
