#include "fcp/base/made_ahead.h"

#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(MadeAhead, HandsItemsOutInOrderAndTheirMemoryBack) {
  for (const size_t ahead : {0, 1, 3}) {
    std::atomic<size_t> made = 0;
    std::vector<const int*> places;
    MadeAhead<std::vector<int>> items(ahead, [&](std::vector<int>& item) {
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
      if (std::find(places.begin(), places.end(), item.data()) == places.end()) {
        places.push_back(item.data());
      }
    }
    EXPECT_FALSE(items.next(item));
    EXPECT_FALSE(items.next(item));
    EXPECT_LE(places.size(), std::max<size_t>(1, ahead) + 1);
  }
}

TEST(MadeAhead, AnErrorComesAtItsTurn) {
  int made = 0;
  MadeAhead<int> items(2, [&](int& item) {
    item = made++;
    if (item == 3) throw std::runtime_error("three");
    return true;
  });
  int item = -1;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(items.next(item));
    EXPECT_EQ(item, i);
  }
  EXPECT_THROW(items.next(item), std::runtime_error);
  EXPECT_THROW(items.next(item), std::runtime_error);
}

TEST(MadeAhead, EndsWithItemsLeft) {
  for (int i = 0; i < 50; ++i) {
    MadeAhead<int> items(4, [](int& item) { return ++item > 0; });
    int item = 0;
    if (i % 2 == 0) items.next(item);
  }
}

}  // namespace
}  // namespace fcp
