#include "fcp/conformal/sort_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "fcp/base/infinity.h"
#include "fcp/base/random.h"

namespace fcp {
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
