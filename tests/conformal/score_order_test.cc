#include "fcp/conformal/score_order.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/kth_smallest.h"

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
}  // namespace fcp
