#include "fcp/base/prefetch.h"

#include <atomic>
#include <chrono>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/no_threads.h"

namespace fcp {
namespace {

using testing::ElementsAre;

TEST(Prefetcher, HandsItemsOutInOrderAndTheirMemoryBack) {
  for (const size_t ahead : {0, 1, 3}) {
    std::atomic<size_t> made = 0;
    std::vector<const int*> memory;
    Prefetcher<std::vector<int>> items(ahead, [&](std::vector<int>& item) {
      if (made == 1000) return false;
      item.resize(1);
      item[0] = static_cast<int>(made++);
      return true;
    });
    std::vector<int> item;
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(items.next(item));
      ASSERT_EQ(item, std::vector<int>{i});
      // Those that wait, the one in the making, and the one that was taken.
      EXPECT_LE(made, static_cast<size_t>(i) + 2 + std::max<size_t>(1, ahead));
      if (std::find(memory.begin(), memory.end(), item.data()) == memory.end()) {
        memory.push_back(item.data());
      }
    }
    EXPECT_FALSE(items.next(item));
    EXPECT_FALSE(items.next(item));
    EXPECT_LE(memory.size(), std::max<size_t>(1, ahead) + 1);
  }
}

TEST(Prefetcher, GivesItemsInOrderWhateverThreadIsFaster) {
  for (const size_t threads : {1, 2, 7}) {
    for (const size_t ahead : {1, 3, 100}) {
      Prefetcher<size_t> items(ahead, threads, [](size_t index, size_t& item) {
        std::this_thread::sleep_for(std::chrono::microseconds(index * 7919 % 300));
        item = 2 * index;
        return index < 60;
      });
      size_t item = 0;
      for (size_t index = 0; index < 60; ++index) {
        ASSERT_TRUE(items.next(item));
        ASSERT_EQ(item, 2 * index) << threads << " threads, " << ahead;
      }
      EXPECT_FALSE(items.next(item));
    }
  }
}

TEST(Prefetcher, WorksAheadButNotFurtherThanAsked) {
  std::atomic<size_t> begun = 0;
  Prefetcher<int> items(5, 3, [&](size_t, int&) { return ++begun > 0; });
  const auto settle = [&](size_t expected) {
    for (int i = 0; i < 60000 && begun < expected; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time to go too far
    return begun.load();
  };
  EXPECT_EQ(settle(5), 5u);
  int item = 0;
  EXPECT_TRUE(items.next(item) && items.next(item));
  EXPECT_EQ(settle(7), 7u);
}

TEST(Prefetcher, AnErrorComesAtItsTurn) {
  for (const size_t threads : {1, 2}) {
    Prefetcher<size_t> items(4, threads, [&](size_t index, size_t& item) {
      if (index == 3) throw std::runtime_error("three");
      item = index;
      return true;
    });
    size_t item = 9;
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(items.next(item));
      EXPECT_EQ(item, i);
    }
    EXPECT_THROW(items.next(item), std::runtime_error);
    EXPECT_THROW(items.next(item), std::runtime_error);
  }
}

TEST(Prefetcher, MakesItemsWhenTheyAreAskedForWhereNoThreadStarts) {
  const NoThreads none;
  bool broken = true;
  Prefetcher<size_t> items(2, 2, [&](size_t index, size_t& item) {
    if (index == 2 && broken) throw std::runtime_error("two");
    item = index;
    return index < 3;
  });
  size_t item = 9;
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(items.next(item));
    EXPECT_EQ(item, i);
  }
  EXPECT_THROW(items.next(item), std::runtime_error);
  broken = false;
  EXPECT_TRUE(items.next(item));
  EXPECT_FALSE(items.next(item));
  EXPECT_FALSE(items.next(item));
}

TEST(Prefetcher, EndsWithItemsLeft) {
  for (int i = 0; i < 50; ++i) {
    Prefetcher<int> items(8, 1 + i % 3, [](size_t, int&) { return true; });
    int item = 0;
    if (i % 2 == 0) items.next(item);
  }
}

std::vector<size_t> next_of(PrefetchedList<size_t>& list, size_t count) {
  std::vector<size_t> found;
  const size_t some = list.next(count, [&](size_t i, size_t& item) {
    EXPECT_EQ(i, found.size());
    found.push_back(item);
  });
  EXPECT_EQ(some, found.size());
  return found;
}

TEST(PrefetchedList, IsReadFromAnywhere) {
  std::atomic<size_t> made = 0;
  PrefetchedList<size_t> list(10, 4, 2, [&](size_t index, size_t& item) {
    ++made;
    item = index;
  });
  EXPECT_THAT(next_of(list, 3), ElementsAre(0, 1, 2));
  EXPECT_EQ(list.position(), 3u);
  list.rewind();
  EXPECT_THAT(next_of(list, 2), ElementsAre(0, 1));
  EXPECT_THAT(next_of(list, 20), ElementsAre(2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(next_of(list, 1), ElementsAre());
  list.rewind();
  EXPECT_EQ(list.skip(4), 4u);
  made = 0;
  EXPECT_THAT(next_of(list, 2), ElementsAre(4, 5));
  EXPECT_EQ(made, 2u);  // what was not asked for may be skipped
  EXPECT_EQ(list.skip(9), 4u);
  EXPECT_THAT(next_of(list, 1), ElementsAre());
}

TEST(PrefetchedList, GoesOnBeforeTheBatchThatFailed) {
  std::atomic<bool> broken = true;
  PrefetchedList<size_t> list(6, 4, 2, [&](size_t index, size_t& item) {
    if (index == 3 && broken) throw std::runtime_error("three");
    item = index;
  });
  EXPECT_THAT(next_of(list, 2), ElementsAre(0, 1));
  for (int again = 0; again < 2; ++again) {
    EXPECT_THROW(list.next(2, [](size_t, size_t&) {}), std::runtime_error);
  }
  broken = false;
  EXPECT_THAT(next_of(list, 2), ElementsAre(2, 3));
}

}  // namespace
}  // namespace fcp
