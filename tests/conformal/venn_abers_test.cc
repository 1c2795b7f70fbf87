#include "fcp/conformal/venn_abers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

// Isotonic regression at one of the scores by its definition: the largest, over all starts before
// it, of the smallest mean, over all ends after it.
double isotonic_at(const std::vector<std::pair<double, bool>>& rows, double score) {
  std::map<double, std::pair<double, double>> sums;  // rows and those of the class, by score
  for (const auto& [at, hit] : rows) {
    sums[at].first += 1;
    sums[at].second += hit ? 1 : 0;
  }
  const auto own = sums.find(score);
  double largest = 0;
  for (auto start = sums.begin(); start != std::next(own); ++start) {
    double count = 0, hits = 0, smallest = 1;
    bool reached = false;
    for (auto end = start; end != sums.end(); ++end) {
      count += end->second.first;
      hits += end->second.second;
      reached = reached || end == own;
      if (reached) smallest = std::min(smallest, hits / count);
    }
    largest = std::max(largest, smallest);
  }
  return largest;
}

struct LabelledRows {
  std::vector<double> scores;
  std::vector<bool> hits;
};

// Scores with ties, whose probability is their square.
LabelledRows draw_labelled(Random& random, size_t count, size_t distinct) {
  LabelledRows rows;
  for (size_t i = 0; i < count; ++i) {
    rows.scores.push_back(static_cast<double>(random.below(distinct)) /
                          static_cast<double>(distinct));
    rows.hits.push_back(random.uniform() < rows.scores.back() * rows.scores.back());
  }
  return rows;
}

TEST(VennAbers, RefitsIsotonicRegressionForEveryRow) {
  Random random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t distinct = 1 + random.below(30);
    const LabelledRows rows = draw_labelled(random, 1 + random.below(40), distinct);
    const VennAbers found(rows.scores, rows.hits);
    std::vector<double> asked = rows.scores;
    for (int i = 0; i < 20; ++i) asked.push_back(1.2 * random.uniform() - 0.1);
    for (const double score : asked) {
      for (const bool hit : {false, true}) {
        std::vector<std::pair<double, bool>> all;
        for (size_t i = 0; i < rows.scores.size(); ++i) {
          all.emplace_back(rows.scores[i], rows.hits[i]);
        }
        all.emplace_back(score, hit);
        const VennAbersPair pair = found.at(score);
        EXPECT_NEAR(hit ? pair.p1 : pair.p0, isotonic_at(all, score), 1e-12) << score;
      }
    }
  }
}

TEST(VennAbers, ByHand) {
  // One row of either kind: below both, between and above.
  const VennAbers two(std::vector<double>{0.2, 0.7}, {false, true});
  EXPECT_EQ(two.at(0.1).p0, 0);
  EXPECT_EQ(two.at(0.1).p1, 0.5);
  EXPECT_EQ(two.at(0.5).p0, 0);
  EXPECT_EQ(two.at(0.5).p1, 1);
  EXPECT_EQ(two.at(0.7).p0, 0.5);
  EXPECT_EQ(two.at(0.9).p0, 0.5);
  EXPECT_EQ(two.at(0.9).p1, 1);
  EXPECT_DOUBLE_EQ(two.at(0.9).merged(), 1 / 1.5);
}

TEST(VennAbers, KeepsTheStepsAlone) {
  Random random(12);
  const LabelledRows rows = draw_labelled(random, 20000, 20000);
  const VennAbers found(rows.scores, rows.hits);
  EXPECT_LT(found.steps().size(), 2000u);
  const VennAbers again(found.steps());
  for (int i = 0; i < 1000; ++i) {
    const double score = random.uniform();
    EXPECT_EQ(again.at(score).p0, found.at(score).p0);
    EXPECT_EQ(again.at(score).p1, found.at(score).p1);
    EXPECT_LE(found.at(score).p0, found.at(score).p1);
  }
}

TEST(VennAbers, SaysWhatIsWrong) {
  EXPECT_THROW(VennAbers(std::vector<double>{}, {}), Error);
  EXPECT_THROW(VennAbers(std::vector<double>{0.5}, {true, false}), Error);
  EXPECT_THROW(VennAbers(std::vector<double>{std::nan("")}, {true}), Error);
  constexpr double kFirst = -std::numeric_limits<double>::infinity();
  EXPECT_THROW(VennAbers({{0.0, 0.1, 0.2}}), Error);
  EXPECT_THROW(VennAbers({{kFirst, 0.3, 0.2}}), Error);
  EXPECT_THROW(VennAbers({{kFirst, 0.1, 0.2}, {0.5, 0.0, 0.3}}), Error);
}

// E(Y − p_Y; p_Y in a bin) = 0 for each of five bins, over 20,000 calibrations of 20 rows with one
// new row each: independent numbers between −1 and 1. By Hoeffding one of the five means is farther
// from 0 than 0.0402 with a chance below 1e-6. The score itself, p1 alone and p0 alone are not
// calibrated, and the test tells them.
TEST(VennAbers, OneOfThePairIsCalibrated) {
  constexpr int kRepeats = 20000;
  constexpr double kBand = 0.0402;
  Random random(13);
  std::map<std::string, std::vector<double>> gaps;
  for (const char* name : {"pair", "p0", "p1", "score"}) gaps[name].assign(5, 0);
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const LabelledRows rows = draw_labelled(random, 21, 50);
    const std::span<const double> seen(rows.scores.data(), 20);
    const VennAbers fitted(seen, {rows.hits.begin(), rows.hits.begin() + 20});
    const double truth = rows.hits[20] ? 1 : 0;
    const VennAbersPair pair = fitted.at(rows.scores[20]);
    const auto note = [&](const char* name, double p) {
      gaps[name][std::min<size_t>(4, static_cast<size_t>(5 * p))] += (truth - p) / kRepeats;
    };
    note("pair", truth == 1 ? pair.p1 : pair.p0);
    note("p0", pair.p0);
    note("p1", pair.p1);
    note("score", rows.scores[20]);
  }
  const auto largest = [&](const char* name) {
    double most = 0;
    for (const double gap : gaps[name]) most = std::max(most, std::abs(gap));
    return most;
  };
  EXPECT_LT(largest("pair"), kBand);
  EXPECT_GT(largest("p0"), kBand);
  EXPECT_GT(largest("p1"), kBand);
  EXPECT_GT(largest("score"), kBand);
}

}  // namespace
}  // namespace fcp
