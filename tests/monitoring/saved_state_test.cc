#include "fcp/monitoring/saved_state.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

struct Part {
  double number = 0;
  size_t count = 0;
  bool flag = false;
  std::string text;
  std::vector<double> numbers;
  std::vector<std::string> list;

  void exchange(SavedState& state) {
    state.expect(3, "things");
    state.number(number);
    state.count(count);
    state.flag(flag);
    state.text(text);
    state.numbers(numbers);
    state.list(list, [&](std::string& one) { state.text(one); });
  }
};

std::string bytes_of(Part part) {
  SavedState state;
  part.exchange(state);
  return state.take();
}

Part some_part() {
  return {.number = -std::numeric_limits<double>::infinity(),
          .count = 1u << 20,
          .flag = true,
          .text = std::string("a\0b", 3),
          .numbers = {0.1, -0.0, 1e300},
          .list = {"", "x"}};
}

TEST(SavedState, IsReadAsItWasWritten) {
  const Part from = some_part();
  Part to;
  to.numbers = {9};
  const std::string bytes = bytes_of(from);
  SavedState state(bytes);
  to.exchange(state);
  state.end();
  EXPECT_EQ(to.number, from.number);
  EXPECT_EQ(to.count, from.count);
  EXPECT_TRUE(to.flag);
  EXPECT_EQ(to.text, from.text);
  EXPECT_EQ(to.numbers, from.numbers);
  EXPECT_EQ(to.list, from.list);
}

TEST(SavedState, RefusesOtherBytes) {
  const std::string bytes = bytes_of(some_part());
  for (size_t size = 0; size < bytes.size(); ++size) {
    Part part;
    SavedState state(std::string_view(bytes).substr(0, size));
    EXPECT_THROW(part.exchange(state), Error) << size;
  }
  Part part;
  const std::string more = bytes + "x";
  SavedState longer(more);
  part.exchange(longer);
  EXPECT_THROW(longer.end(), Error);
  std::string other = bytes;
  other[0] = 4;
  SavedState state(other);
  EXPECT_THROW(part.exchange(state), Error);
}

// A count that is wrong does not ask for all memory.
TEST(SavedState, ChecksSizesBeforeItBelievesThem) {
  std::string bytes(16, '\xff');
  std::vector<double> numbers;
  SavedState state(bytes);
  EXPECT_THROW(state.numbers(numbers), Error);
  std::string text;
  SavedState again(bytes);
  EXPECT_THROW(again.text(text), Error);
}

}  // namespace
}  // namespace fcp
