#include "apps/server/repeated_request.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

const std::vector<Level> kLevels = {Level::parse("0.1"), Level::parse("0.05")};

GivenAnswer intervals() {
  return {.tensors = {{"prediction", {2, 1}, std::vector<float>{1, 2}},
                      {"lower_0.1", {2, 1}, std::vector<float>{0, 1}},
                      {"upper_0.1", {2, 1}, std::vector<float>{2, kInf}},
                      {"lower_0.05", {2, 1}, std::vector<float>{-1, -kInf}},
                      {"upper_0.05", {2, 1}, std::vector<float>{3, kInf}}},
          .levels = kLevels,
          .version = 2};
}

GivenAnswer sets() {
  return {.tensors = {{"prediction", {2}, std::vector<int64_t>{1, 2}},
                      {"in_set", {2, 3}, std::vector<uint8_t>{0, 1, 1, 0, 0, 0}}},
          .levels = {Level(0.1)},
          .adapted = Level(0.1),
          .version = 1};
}

// As a store has it, of rows with the numbers x.
std::vector<WaitingPrediction> kept(const GivenAnswer& given, const std::vector<float>& x) {
  const std::vector<std::string> answers = kept_answers(given);
  std::vector<WaitingPrediction> rows;
  const size_t width = x.size() / answers.size();
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(i * width);
    rows.push_back({"m",
                    "id",
                    static_cast<int64_t>(i),
                    "sha",
                    1,
                    0,
                    {first, first + static_cast<std::ptrdiff_t>(width)},
                    given.adapted ? given.adapted->value() : 0,
                    0,
                    answers[i]});
  }
  return rows;
}

void expect_equal(const GivenAnswer& a, const GivenAnswer& b) {
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.levels, b.levels);
  EXPECT_EQ(a.adapted.has_value(), b.adapted.has_value());
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].shape, b.tensors[i].shape);
    EXPECT_EQ(a.tensors[i].data, b.tensors[i].data);
  }
}

TEST(RepeatedRequest, IsAnsweredAsBefore) {
  const std::vector<float> x = {1, std::nanf(""), 3, 4};
  const auto again = repeated_answer(kept(intervals(), x), x, 2, kLevels);
  ASSERT_TRUE(again);
  expect_equal(*again, intervals());
  const auto set = repeated_answer(kept(sets(), x), x, 2, {});
  ASSERT_TRUE(set);
  expect_equal(*set, sets());
}

TEST(RepeatedRequest, IsNoOther) {
  const std::vector<float> x = {1, 2, 3, 4}, other = {1, 2, 3, 5}, fewer = {1, 2};
  EXPECT_FALSE(repeated_answer(kept(intervals(), x), other, 2, kLevels));
  EXPECT_FALSE(repeated_answer(kept(intervals(), x), fewer, 1, kLevels));
  EXPECT_FALSE(repeated_answer(kept(intervals(), x), x, 2, {Level(0.1)}));
  EXPECT_FALSE(repeated_answer(kept(intervals(), x), x, 2, {Level(0.1), Level(0.2)}));
  EXPECT_FALSE(repeated_answer(kept(sets(), x), x, 2, {Level(0.1)}));  // it was adapted
  auto forgotten = kept(intervals(), x);
  forgotten.erase(forgotten.begin());
  EXPECT_FALSE(repeated_answer(forgotten, x, 2, kLevels));
  auto older = kept(intervals(), x);
  older[1].answer.clear();  // by a version that kept no answers
  EXPECT_FALSE(repeated_answer(older, x, 2, kLevels));
}

TEST(RepeatedRequest, RegionsAreCounted) {
  EXPECT_EQ(counts_of(intervals()).unbounded, 1u);
  EXPECT_EQ(counts_of(intervals()).empty, 0u);
  EXPECT_EQ(counts_of(sets()).unbounded, 0u);
  EXPECT_EQ(counts_of(sets()).empty, 1u);
}

}  // namespace
}  // namespace fcp
