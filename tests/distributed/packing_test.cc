#include "fcp/distributed/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/support/thread_ranks.h"

namespace fcp {
struct PackedItem {
  std::string name;
  bool known = false;
  float size = 0;
  std::vector<std::string> parts{};

  bool operator==(const PackedItem&) const = default;
};

template <typename Archive>
void visit_fields(Archive& archive, PackedItem& item) {
  archive(item.name, item.known, item.size, item.parts);
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Relay, TakesEveryBatchOnceAndInOrderForAnyNumberOfRanks) {
  for (int size = 1; size <= 9; ++size) {
    for (size_t batches = 0; batches <= 20; ++batches) {
      std::vector<std::string> taken;
      run_threads(size, [&](Communicator& ranks) {
        relay_batches(
            ranks,
            [&](size_t batch) -> std::optional<std::string> {
              EXPECT_EQ(batch % static_cast<size_t>(size), static_cast<size_t>(ranks.rank()));
              if (batch >= batches) return std::nullopt;
              return std::to_string(batch);
            },
            [&](size_t batch, std::string_view result) {
              EXPECT_EQ(ranks.rank(), 0);
              EXPECT_EQ(batch, taken.size());
              taken.emplace_back(result);
            });
      });
      ASSERT_EQ(taken.size(), batches) << size;
      for (size_t i = 0; i < batches; ++i) EXPECT_EQ(taken[i], std::to_string(i));
    }
  }
}

TEST(Relay, AFailureOnOneRankEndsTheOthers) {
  EXPECT_THAT(
      [] {
        run_threads(3, [](Communicator& ranks) {
          relay_batches(
              ranks,
              [](size_t batch) -> std::optional<std::string> {
                if (batch == 7) fail("batch 7 is wrong");
                return "fine";
              },
              [](size_t, std::string_view) {});
        });
      },
      ThrowsMessage<Error>(HasSubstr("batch 7")));
}

TEST(Packing, GivesBackWhatWasAdded) {
  Packer packer;
  packer.add(std::vector<double>{1.5, -0.0});
  packer.add(std::vector<float>{});
  packer.add(uint64_t{7});
  packer.add(std::string("text"));
  const std::string bytes = packer.take();
  Unpacker unpacker(bytes);
  const std::vector<double> numbers = unpacker.numbers<double>();
  EXPECT_THAT(numbers, ElementsAre(1.5, 0.0));
  EXPECT_TRUE(std::signbit(numbers[1]));
  EXPECT_TRUE(unpacker.numbers<float>().empty());
  EXPECT_EQ(unpacker.number(), 7u);
  EXPECT_EQ(unpacker.text(), "text");
  EXPECT_THROW(unpacker.number(), Error);
}

TEST(Packing, StructsGoBothWaysThroughOneList) {
  const std::vector<PackedItem> items = {{"a", true, 2.5f, {"x", "y"}}, {"", false, -1, {}}};
  Packer packer;
  packer(items, uint64_t{3}, std::vector<double>{4});
  const std::string bytes = packer.take();
  std::vector<PackedItem> found;
  uint64_t number = 0;
  std::vector<double> numbers;
  Unpacker unpacker(bytes);
  unpacker(found, number, numbers);
  EXPECT_EQ(found, items);
  EXPECT_EQ(number, 3u);
  EXPECT_THAT(numbers, ElementsAre(4));
  for (size_t length = 0; length < bytes.size(); ++length) {
    Unpacker cut(std::string_view(bytes).substr(0, length));
    EXPECT_THROW(cut(found, number, numbers), Error);
  }
}

TEST(Packing, RefusesWhatIsCutOff) {
  Packer packer;
  packer.add(std::vector<double>{1, 2, 3});
  const std::string bytes = packer.take();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(Unpacker(std::string_view(bytes).substr(0, length)).numbers<double>(), Error);
  }
}

}  // namespace
}  // namespace fcp
