#include "fcp/conformal/quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

using reference::kInfinity;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Scores with many ties and both infinities.
std::vector<double> strange_scores(Random* random, size_t n) {
  std::vector<double> scores(n);
  for (double& score : scores) {
    const uint64_t kind = random->below(10);
    score = kind == 0   ? kInfinity
            : kind == 1 ? -kInfinity
            : kind < 6  ? static_cast<double>(random->below(4))
                        : random->normal();
  }
  return scores;
}

TEST(Quantile, EightScoresAreTooFewForOneTenth) {
  const std::vector<double> scores = {3, 1, 2, 8, 5, 4, 7, 6};
  EXPECT_EQ(conformal_quantile(scores, Level(0.1)), kInfinity);
  EXPECT_EQ(conformal_quantile({}, Level(0.1)), kInfinity);
  const std::vector<double> nine = {3, 1, 2, 8, 5, 4, 7, 6, 9};
  EXPECT_EQ(conformal_quantile(nine, Level(0.1)), 9);
  EXPECT_EQ(conformal_quantile(nine, Level(0.2)), 8);
}

TEST(Quantile, OneScore) {
  const std::vector<double> one = {-4};
  EXPECT_EQ(conformal_quantile(one, Level(0.5)), -4);
  EXPECT_EQ(conformal_quantile(one, Level::parse("0.499999999999999999")), kInfinity);
  EXPECT_EQ(conformal_quantile(one, Level::parse("0.999999999999999999")), -4);
}

TEST(Quantile, ConstantScores) {
  const std::vector<double> constant(50, 2.5);
  EXPECT_EQ(conformal_quantile(constant, Level(0.02)), 2.5);
  EXPECT_EQ(conformal_quantile(constant, Level(0.999)), 2.5);
  EXPECT_EQ(conformal_quantile(constant, Level(0.001)), kInfinity);
}

// So many that a sample brackets the quantile; and then scores that a sample with a stride sees
// nothing of, so that the bracket misses.
TEST(Quantile, ManyScores) {
  Random random(7);
  std::vector<double> scores = strange_scores(&random, 400'000);
  for (const bool striped : {false, true}) {
    if (striped) {
      for (size_t i = 0; i < scores.size(); ++i) scores[i] = i % 12 == 0 ? 5 : random.normal();
    }
    std::vector<double> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    for (const double alpha : {1e-7, 1e-6, 0.001, 0.1, 0.5, 0.9, 0.9999}) {
      const size_t rank = conformal_rank(Level(alpha), scores.size());
      const double expected = rank > sorted.size() ? kInfinity : sorted[rank - 1];
      EXPECT_EQ(conformal_quantile(scores, Level(alpha)), expected) << alpha;
    }
  }
  // Whatever is left over when numbers are looked at eight at a time.
  for (const size_t more : {1, 4, 7}) {
    std::vector<double> odd(300'000 + more, 1);
    for (size_t i = 0; i < more; ++i) odd[300'000 + i] = 2;
    EXPECT_EQ(conformal_quantile(odd, Level::fraction(more, odd.size() + 1)), 2) << more;
    EXPECT_EQ(conformal_quantile(odd, Level::fraction(more + 1, odd.size() + 1)), 1) << more;
    odd.back() = std::nan("");
    EXPECT_THROW(conformal_quantile(odd, Level(0.1)), Error) << more;
  }
  const std::vector<double> constant(300'000, 2.5);
  EXPECT_EQ(conformal_quantile(constant, Level(0.1)), 2.5);
  scores[123'456] = std::nan("");
  EXPECT_THAT([&] { conformal_quantile(scores, Level(0.1)); },
              ThrowsMessage<Error>(HasSubstr("score of row 123456 is NaN")));
}

TEST(Quantile, SelectionEqualsSorting) {
  Random random(1);
  for (int repeat = 0; repeat < 3000; ++repeat) {
    const size_t n = random.below(60);
    const uint64_t a = 1 + random.below(99);
    const Level level = Level::fraction(a, 100);
    const std::vector<double> scores = strange_scores(&random, n);
    const double expected = reference::quantile(scores, a, 100);
    ASSERT_EQ(conformal_quantile(scores, level), expected);
    ASSERT_EQ(conformal_quantile_sorted(sorted_scores(scores), level), expected);
  }
}

TEST(Quantile, NamesTheRowOfANaN) {
  std::vector<double> scores(40, 1.0);
  scores[17] = std::nan("");
  EXPECT_THAT([&] { conformal_quantile(scores, Level(0.1)); },
              ThrowsMessage<Error>(HasSubstr("score of row 17 is NaN")));
  EXPECT_THAT([&] { sorted_scores(scores); },
              ThrowsMessage<Error>(HasSubstr("score of row 17 is NaN")));
}

// With uniform scores the true coverage of radius r is r itself, and over calibrations it follows
// Beta(k, n + 1 − k). Kolmogorov and Smirnov: with T draws P(distance > d) ≤ 2 exp(−2 T d²)
// (Massart), so d = sqrt(log(2e6 · 4) / 2T) fails by chance with probability below 1e-6 over all
// four settings.
TEST(Quantile, TrueCoverageFollowsTheBetaLaw) {
  struct Setting {
    size_t n;
    double alpha;
  };
  constexpr size_t kCalibrations = 2000;
  const double limit = std::sqrt(std::log(8e6) / (2.0 * kCalibrations));
  Random random(2);
  for (const Setting& setting : {Setting{9, 0.1}, {19, 0.05}, {100, 0.1}, {999, 0.2}}) {
    const size_t n = setting.n;
    const double alpha = setting.alpha;
    const Level level(alpha);
    const size_t k = conformal_rank(level, n);
    std::vector<double> coverage(kCalibrations);
    std::vector<double> scores(n);
    for (double& radius : coverage) {
      for (double& score : scores) score = random.uniform();
      radius = conformal_quantile(scores, level);
    }
    std::sort(coverage.begin(), coverage.end());
    double distance = 0;
    double distance_next_rank = 0;
    for (size_t i = 0; i < kCalibrations; ++i) {
      const auto gap = [&](size_t rank) {
        const double expected = reference::beta_cdf(coverage[i], rank, n);
        return std::max(std::abs(expected - static_cast<double>(i) / kCalibrations),
                        std::abs(expected - static_cast<double>(i + 1) / kCalibrations));
      };
      distance = std::max(distance, gap(k));
      distance_next_rank = std::max(distance_next_rank, gap(k - 1));
    }
    EXPECT_LT(distance, limit) << "n " << n << ", alpha " << alpha;
    // The test is sharp enough to see a rank that is one too small where n is small.
    if (n <= 100) {
      EXPECT_GT(distance_next_rank, limit) << "n " << n << ", alpha " << alpha;
    }
  }
}

// weighted_quantile_sorted of scores in any order.
double weighted_quantile(const std::vector<double>& scores, const std::vector<double>& weights,
                         double test_weight, const Level& level) {
  std::vector<std::pair<double, double>> rows;
  for (size_t i = 0; i < scores.size(); ++i) rows.emplace_back(scores[i], weights[i]);
  std::sort(rows.begin(), rows.end());
  std::vector<double> sorted, sorted_weights;
  for (const auto& [score, weight] : rows) {
    sorted.push_back(score);
    sorted_weights.push_back(weight);
  }
  return weighted_quantile_sorted(sorted, sorted_weights, test_weight, level);
}

TEST(WeightedQuantile, EqualWeightsGiveThePlainQuantile) {
  Random random(3);
  for (const double weight : {1.0, 0.1, 1e-300, 1e300, 1.0 / 3}) {
    for (int repeat = 0; repeat < 400; ++repeat) {
      const size_t n = random.below(120);
      const Level level = Level::fraction(1 + random.below(99), 100);
      const std::vector<double> scores = strange_scores(&random, n);
      const std::vector<double> weights(n, weight);
      ASSERT_EQ(weighted_quantile(scores, weights, weight, level),
                conformal_quantile(scores, level));
    }
  }
}

TEST(WeightedQuantile, EqualsRepetitionOfRows) {
  Random random(4);
  for (int repeat = 0; repeat < 3000; ++repeat) {
    const size_t n = random.below(30);
    const uint64_t a = 1 + random.below(99);
    const std::vector<double> scores = strange_scores(&random, n);
    std::vector<double> weights(n);
    for (double& weight : weights) weight = static_cast<double>(random.below(5));
    const size_t test_weight = random.below(5);
    const double found = weighted_quantile(scores, weights, static_cast<double>(test_weight),
                                           Level::fraction(a, 100));
    ASSERT_EQ(found, reference::repeated_quantile(scores, weights, test_weight, a, 100));
  }
}

TEST(WeightedQuantile, LiteralValues) {
  const std::vector<double> scores = {1, 2, 3, 4, 5, 6};
  const std::vector<double> weights = {0.5, 0, 2, 1, 0.25, 3};
  EXPECT_EQ(weighted_quantile_sorted(scores, weights, 1, Level(0.6)), 4);  // 3.5 of 7.75 reached
  EXPECT_EQ(weighted_quantile_sorted(scores, weights, 1, Level(0.1)), kInfinity);
  // A level that is 1 as a double.
  EXPECT_EQ(weighted_quantile_sorted(scores, weights, 1, Level::parse("0.999999999999999999")), 1);
  EXPECT_EQ(weighted_quantile_sorted({}, {}, 1, Level::parse("0.999999999999999999")), kInfinity);
}

TEST(WeightedQuantile, RefusesIllegalWeights) {
  const std::vector<double> scores = {1, 2, 3};
  const auto with = [&](double weight) {
    return [&scores, weight] {
      weighted_quantile_sorted(scores, std::vector<double>{1, weight, 1}, 1, Level(0.1));
    };
  };
  EXPECT_THAT(with(-1), ThrowsMessage<Error>(HasSubstr("weight of row 1 is -1")));
  EXPECT_THAT(with(std::nan("")), ThrowsMessage<Error>(HasSubstr("weight of row 1 is nan")));
  EXPECT_THAT(with(kInfinity), ThrowsMessage<Error>(HasSubstr("weight of row 1 is inf")));
  EXPECT_THROW(weighted_quantile_sorted(scores, std::vector<double>(3, 1.0), -1, Level(0.1)),
               Error);
  EXPECT_THROW(weighted_quantile_sorted(scores, std::vector<double>(2, 1.0), 1, Level(0.1)), Error);
  EXPECT_EQ(weighted_quantile_sorted(scores, std::vector<double>(3, 0.0), 0, Level(0.1)),
            kInfinity);
}

// Scores that drift, jump, tie, and become infinite.
TEST(FollowingQuantile, IsTheQuantile) {
  Random random(11);
  for (const size_t n : {5, 40, 1000}) {
    for (const double drift : {0.0, 1e-3, 0.3, 100.0}) {
      std::vector<double> scores(n);
      for (double& score : scores) score = std::floor(20 * random.uniform()) / 7;
      FollowingQuantile following(Level(0.1));
      for (int call = 0; call < 30; ++call) {
        for (double& score : scores) score += drift * (random.uniform() - 0.3);
        if (call == 20) scores[n / 2] = kInfinity;
        EXPECT_EQ(following.of(scores), conformal_quantile(scores, Level(0.1)));
      }
    }
  }
}

TEST(FollowingQuantile, NamesTheRowOfANaN) {
  FollowingQuantile following(Level(0.5));
  std::vector<double> scores = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(following.of(scores), 4);
  EXPECT_EQ(following.of(scores), 4);
  scores[3] = std::nan("");
  EXPECT_THAT([&] { following.of(scores); }, ThrowsMessage<Error>(HasSubstr("row 3")));
}

}  // namespace
namespace {

TEST(Rank, KnownValues) {
  EXPECT_EQ(conformal_rank(Level(0.1), 8), 9u);  // more than the 8 scores there are
  EXPECT_EQ(conformal_rank(Level(0.1), 9), 9u);
  EXPECT_EQ(conformal_rank(Level(0.05), 19), 19u);
  EXPECT_EQ(conformal_rank(Level(0.1), 100), 91u);
  EXPECT_EQ(conformal_rank(Level(0.2), 999), 800u);
  EXPECT_EQ(conformal_rank(Level(0.5), 0), 1u);
  EXPECT_EQ(conformal_rank(Level::parse("1e-18"), 1000000), 1000001u);
  EXPECT_EQ(conformal_rank(Level::parse("0.999999999999999999"), 1000000), 1u);
  EXPECT_EQ(conformal_rank(Level::fraction(1, 3), 2), 2u);
}

// The reference tries every k, and so starts from the previous n's answer: k grows with n.
TEST(Rank, IsTheSmallestSufficientIntegerForEveryThousandth) {
  for (uint64_t a = 1; a < 1000; ++a) {
    const Level level = Level::fraction(a, 1000);
    size_t k = 0;
    for (size_t n = 0; n <= 2000; ++n) {
      while (k * 1000 < (1000 - a) * (n + 1)) ++k;
      ASSERT_EQ(conformal_rank(level, n), k) << "alpha " << a << "/1000, n " << n;
    }
    ASSERT_EQ(reference::rank(a, 1000, 2000), k);
  }
}

TEST(Rank, TextAndDoubleGiveTheSameRankAsTheFraction) {
  for (uint64_t a = 1; a < 1000; ++a) {
    const Level exact = Level::fraction(a, 1000);
    ASSERT_EQ(Level(static_cast<double>(a) / 1000), exact) << a;
    ASSERT_EQ(Level::parse(std::to_string(a) + "e-3"), exact) << a;
  }
}

// Why Level exists: the formula written in doubles is off by one for common levels.
TEST(Rank, FloatingPointWouldBeWrong) {
  const auto naive = [](double alpha, size_t n) {
    return static_cast<size_t>(std::ceil((1 - alpha) * static_cast<double>(n + 1)));
  };
  size_t wrong = 0;
  for (uint64_t a = 1; a < 1000; ++a) {
    const double alpha = static_cast<double>(a) / 1000;
    for (size_t n = 0; n <= 2000; ++n) {
      wrong += naive(alpha, n) != conformal_rank(Level::fraction(a, 1000), n);
    }
  }
  EXPECT_GT(wrong, 100u);
  // Neither 0.1 nor 1 - 0.9 shifts the rank.
  EXPECT_EQ(conformal_rank(Level(1 - 0.9), 9), conformal_rank(Level(0.1), 9));
}

TEST(LeastCalibrationRows, IsTheFirstWithARankInside) {
  for (uint64_t a = 1; a < 60; ++a) {
    for (uint64_t b = a + 1; b < 60; ++b) {
      const Level level = Level::fraction(a, b);
      size_t n = 0;
      while (conformal_rank(level, n) > n) ++n;
      EXPECT_EQ(least_calibration_rows(level), n) << a << "/" << b;
    }
  }
  EXPECT_EQ(least_calibration_rows(Level(0.1)), 9u);
  EXPECT_EQ(least_calibration_rows(Level(0.001)), 999u);
  // Beyond 64 bits there is no such number: the answer is at once the largest there is.
  EXPECT_EQ(least_calibration_rows(Level::parse("1e-19")), 9999999999999999999u);
  for (const char* tiny : {"1e-20", "3e-25", "1e-38"}) {
    EXPECT_EQ(least_calibration_rows(Level::parse(tiny)), std::numeric_limits<size_t>::max() - 1);
    EXPECT_EQ(conformal_rank(Level::parse(tiny), 1000), 1001u);
  }
}

}  // namespace
}  // namespace fcp
