#include "apps/server/sql_database.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

StoredAnswer intervals() {
  return {.version = 3,
          .levels = {0.1, 0.05},
          .label = 0,
          .prediction = {1, 10},
          .lower = {0, 8, -1, -kInf},
          .upper = {2, 12, 3, kInf},
          .members = {}};
}

StoredAnswer sets() {
  return {.version = 1,
          .levels = {0.1, 0.05},
          .label = 2,
          .prediction = {},
          .lower = {},
          .upper = {},
          .members = {0, 0, 1, 1, 0, 1}};
}

TEST(StoredAnswer, ComesBackFromItsBytes) {
  const StoredAnswer again = read_answer(bytes_of(intervals()));
  EXPECT_EQ(again.version, 3);
  EXPECT_THAT(again.levels, ElementsAre(0.1, 0.05));
  EXPECT_THAT(again.prediction, ElementsAre(1, 10));
  EXPECT_THAT(again.lower, ElementsAre(0, 8, -1, -kInf));
  EXPECT_THAT(again.upper, ElementsAre(2, 12, 3, kInf));
  EXPECT_TRUE(again.members.empty());
  const StoredAnswer set = read_answer(bytes_of(sets()));
  EXPECT_EQ(set.label, 2);
  EXPECT_TRUE(set.prediction.empty());
  EXPECT_THAT(set.members, ElementsAre(0, 0, 1, 1, 0, 1));
}

TEST(StoredAnswer, RefusesBytesThatAreNone) {
  const std::string bytes = bytes_of(intervals());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(read_answer(std::string_view(bytes).substr(0, size)), Error) << size;
  }
  EXPECT_THROW(read_answer(bytes + "x"), Error);
  std::string large = bytes;
  for (size_t i = 24; i < 32; ++i) large[i] = '\x7f';  // outputs
  EXPECT_THROW(read_answer(large), Error);
}

TEST(StoredAnswer, JudgesTruthsOfIntervals) {
  const StoredAnswer answer = intervals();
  const AnswerJudgement in = judge_by_answer(answer, {2, 8}, 0.1);
  EXPECT_TRUE(in.covered);  // ends belong to it
  EXPECT_EQ(in.size, 3);    // the mean of 2 and 4
  EXPECT_EQ(in.alpha, 0.1);
  EXPECT_FALSE(judge_by_answer(answer, {2.5f, 8}, 0.1).covered);
  const AnswerJudgement other = judge_by_answer(answer, {2.5f, 1e30f}, 0.06);
  EXPECT_TRUE(other.covered);  // 0.05 is the nearest level
  EXPECT_EQ(other.alpha, 0.05);
  EXPECT_EQ(other.size, std::numeric_limits<double>::infinity());
  EXPECT_THROW(judge_by_answer(answer, {1}, 0.1), Error);
}

TEST(StoredAnswer, JudgesTruthsOfSets) {
  const StoredAnswer answer = sets();
  EXPECT_TRUE(judge_by_answer(answer, {2}, 0.1).covered);
  EXPECT_FALSE(judge_by_answer(answer, {0}, 0.1).covered);
  EXPECT_TRUE(judge_by_answer(answer, {0}, 0.05).covered);
  EXPECT_EQ(judge_by_answer(answer, {0}, 0.05).size, 2);
  for (const float label : {3.0f, -1.0f, 0.5f}) {
    EXPECT_THROW(judge_by_answer(answer, {label}, 0.1), Error) << label;
  }
}

}  // namespace
}  // namespace fcp
