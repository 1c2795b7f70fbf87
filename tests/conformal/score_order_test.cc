#include "fcp/conformal/score_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"

namespace fcp {
namespace {

std::vector<double> some_scores(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<double> scores(count);
  // Halves of small integers: many are equal.
  for (double& score : scores) score = static_cast<double>(random.below(count)) / 2 - 3;
  return scores;
}

TEST(ScoreOrder, EveryPlaceIsThatOfASortedList) {
  for (const size_t count : {1u, 2u, 7u, 500u, 5000u}) {
    const std::vector<double> scores = some_scores(count, count);
    std::vector<double> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    const ScoreOrder order(scores);
    // The first few by selection, in any order; the same again; then by sorting.
    for (const size_t place : {count - 1, count / 2, count / 2, count / 3, count - 1}) {
      EXPECT_EQ(order.at(place), sorted[place]) << count << ' ' << place;
    }
    for (size_t place = 0; place < count; ++place) EXPECT_EQ(order.at(place), sorted[place]);
    EXPECT_TRUE(std::ranges::equal(order.sorted(), sorted));
  }
}

TEST(ScoreOrder, InfiniteScoresHavePlacesAndNanIsRefused) {
  const double infinite = std::numeric_limits<double>::infinity();
  const ScoreOrder order({infinite, 1, -infinite, 2});
  EXPECT_EQ(order.at(0), -infinite);
  EXPECT_EQ(order.at(3), infinite);
  EXPECT_EQ(order.size(), 4u);
  EXPECT_THROW(ScoreOrder({1, std::numeric_limits<double>::quiet_NaN(), 2}), Error);
}

TEST(ScoreOrder, ThreadsFindTheSame) {
  const std::vector<double> scores = some_scores(20000, 3);
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  const ScoreOrder order(scores);
  std::vector<size_t> wrong(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      for (size_t step = 0; step < 20; ++step) {
        const size_t place = (7919 * (step / (i + 1))) % scores.size();
        wrong[i] += order.at(place) != sorted[place];
      }
      wrong[i] += !std::ranges::equal(order.sorted(), sorted);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<size_t>(4));
}

// From 4096 numbers on a sample brackets the answer; below, and above, it must be the same.
TEST(KthSmallest, OfFewAndManyIsThatOfASortedList) {
  Random random(5);
  for (const size_t count : {10u, 4095u, 4096u, 20000u, 300000u}) {
    std::vector<double> numbers(count);
    for (double& number : numbers) number = random.normal();
    std::vector<double> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    for (const size_t rank : {size_t{1}, count / 10 + 1, count / 2, count - count / 10, count}) {
      EXPECT_EQ(kth_smallest(numbers, rank), sorted[rank - 1]) << count << ' ' << rank;
    }
  }
}

}  // namespace
namespace {

TEST(SortScores, AsTheStandardLibrary) {
  Random random(1);
  for (const size_t count : {0, 1, 2, 511, 512, 513, 5000, 70000, 200000}) {
    std::vector<double> scores(count);
    for (double& score : scores) {
      const double size = std::exp(200 * random.uniform() - 100);
      score = (random.uniform() < 0.5 ? -1 : 1) * size;
      if (random.uniform() < 0.3) score = std::floor(4 * random.uniform());  // ties
    }
    std::vector<double> expected = scores;
    std::sort(expected.begin(), expected.end());
    for (const size_t threads : {1, 2, 7}) {
      std::vector<double> some = scores;
      sort_scores(some, threads);
      EXPECT_EQ(some, expected) << count << " on " << threads;
    }
  }
}

TEST(SortScores, EndsOfTheRange) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> ascending = {-kInfinity,
                                         Limits::lowest(),
                                         -1,
                                         -Limits::min(),
                                         -Limits::denorm_min(),
                                         -0.0,
                                         0.0,
                                         Limits::denorm_min(),
                                         Limits::min(),
                                         1,
                                         std::nextafter(1.0, 2.0),
                                         Limits::max(),
                                         kInfinity};
  std::vector<double> scores, expected;
  for (const double score : ascending) expected.insert(expected.end(), 100, score);
  for (int i = 0; i < 100; ++i) scores.insert(scores.end(), ascending.rbegin(), ascending.rend());
  sort_scores(scores);
  EXPECT_EQ(scores, expected);
}

// All equal, but for a few: no part is left for some threads.
TEST(SortScores, EqualNumbersOnSeveralThreads) {
  std::vector<double> scores(200000, 1.0), expected;
  scores[7] = 2;
  scores[100000] = -kInfinity;
  expected = scores;
  std::sort(expected.begin(), expected.end());
  sort_scores(scores, 8);
  EXPECT_EQ(scores, expected);
}

// Numbers that differ in their last bits alone, in runs of all lengths.
TEST(SortScores, NeighbouringNumbers) {
  Random random(2);
  std::vector<double> scores;
  for (const size_t run : {1, 2, 3, 10, 100, 3000}) {
    for (size_t i = 0; i < run; ++i) {
      scores.push_back(static_cast<double>(run) *
                       (1 + 0x1p-52 * std::floor(500 * random.uniform())));
      scores.push_back(-scores.back());
    }
  }
  std::vector<double> expected = scores;
  std::sort(expected.begin(), expected.end());
  sort_scores(scores);
  EXPECT_EQ(scores, expected);
}

TEST(SortScores, EqualScoresStayAsTheyAre) {
  std::vector<double> scores(1000, 0.25);
  sort_scores(scores);
  EXPECT_EQ(scores, std::vector<double>(1000, 0.25));
}

}  // namespace
}  // namespace fcp
