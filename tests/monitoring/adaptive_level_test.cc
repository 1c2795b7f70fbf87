#include "fcp/monitoring/adaptive_level.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/p_value.h"
#include "fcp/conformal/quantile.h"

namespace fcp {
namespace {

// p-values of a hostile world: drifting, with jumps, and now and then always missed.
double hostile(Random& random, size_t t) {
  if (t / 300 % 4 == 3) return 0.001;
  return std::pow(random.uniform(), t / 500 % 2 == 0 ? 1.0 : 4.0);
}

// The bound of Gibbs and Candès holds for every stream, not with some probability.
TEST(AdaptiveLevel, AciKeepsItsBoundWhateverHappens) {
  for (const double step : {0.005, 0.05}) {
    Random random(1);
    AdaptiveLevel level(Level(0.1), {"aci", step});
    double misses = 0;
    for (size_t t = 1; t <= 5000; ++t) {
      const double p = hostile(random, t);
      misses += p <= level.level() ? 1 : 0;
      level.see(p);
      const auto rows = static_cast<double>(t);
      ASSERT_LE(std::abs(misses / rows - 0.1), (0.9 + step) / (step * rows) + 1e-9);
    }
  }
}

TEST(AdaptiveLevel, GoesOnFromItsState) {
  for (const AdaptOptions& options : {AdaptOptions{"dtaci"}, AdaptOptions{"aci", 0.02}}) {
    Random random(3);
    AdaptiveLevel level(Level(0.1), options), other(Level(0.1), options);
    for (size_t t = 0; t < 700; ++t) level.see(hostile(random, t));
    other.restore(level.state());
    for (size_t t = 700; t < 1500; ++t) {
      ASSERT_EQ(level.level(), other.level());
      const double p = hostile(random, t);
      level.see(p);
      other.see(p);
    }
    EXPECT_THROW(level.restore({}), Error);
    EXPECT_THROW(level.restore(std::vector<double>(17, NAN)), Error);
  }
}

// DtACI written out from the paper, with weights that are never normalised.
TEST(AdaptiveLevel, DtaciIsItsAlgorithm) {
  Random random(2);
  AdaptiveLevel level(Level(0.1), {"dtaci"});
  const std::vector<double> steps = {0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128};
  std::vector<double> levels(8, 0.1), weights(8, 1), squares;
  for (size_t t = 0; t < 1200; ++t) {
    double total = 0, mean = 0, square = 0;
    for (const double weight : weights) total += weight;
    for (size_t i = 0; i < 8; ++i) mean += weights[i] / total * levels[i];
    ASSERT_NEAR(level.level(), mean, 1e-9) << t;
    const double p = hostile(random, t);
    const auto loss = [&](double a) { return p >= a ? 0.1 * (p - a) : 0.9 * (a - p); };
    for (size_t i = 0; i < 8; ++i) square += weights[i] / total * loss(levels[i]) * loss(levels[i]);
    squares.push_back(square);
    double sum = 0;
    for (size_t s = squares.size() > 500 ? squares.size() - 500 : 0; s < squares.size(); ++s) {
      sum += squares[s];
    }
    const double rate = std::sqrt((std::log(2.0 * 8 * 500) + 1) / sum);
    double all = 0;
    for (size_t i = 0; i < 8; ++i) {
      weights[i] *= std::exp(-rate * loss(levels[i]));
      all += weights[i];
    }
    for (size_t i = 0; i < 8; ++i) {
      weights[i] = (1 - 1.0 / 1000) * weights[i] + all / 8 / 1000;
      levels[i] += steps[i] * (0.1 - (p <= levels[i] ? 1 : 0));
    }
    level.see(p);
  }
}

// After a change for the worse, dtaci is back at 90 % within 500 rows, where a level that stays is
// at 60 % for ever. Of 2,000 rows then, 90 ± 4 % (four deviations and the distance that adapting
// keeps) are covered.
TEST(AdaptiveLevel, DtaciReturnsToItsTarget) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    AdaptiveLevel adapted(Level(0.1), {"dtaci"}), fixed(Level(0.1), {"none"});
    double covered = 0, fixed_covered = 0;
    for (size_t t = 0; t < 3500; ++t) {
      const double p = std::pow(random.uniform(), t < 1000 ? 1.0 : 2.5);
      if (t >= 1500) {
        covered += p > adapted.level() ? 1 : 0;
        fixed_covered += p > fixed.level() ? 1 : 0;
      }
      adapted.see(p);
      fixed.see(p);
    }
    EXPECT_NEAR(covered / 2000, 0.9, 0.04);
    EXPECT_LT(fixed_covered / 2000, 0.7);
  }
}

TEST(AdaptiveLevel, RefusesWhatIsNotThere) {
  EXPECT_THROW(AdaptiveLevel(Level(0.1), {"pid"}), OptionError);
  EXPECT_THROW(AdaptiveLevel(Level(0.1), {"aci", 0}), OptionError);
}

// Against the plain quantile and p-value of a list of the last W scores.
TEST(ScoreWindow, IsTheLastScores) {
  Random random(3);
  std::vector<double> calibration(40);
  for (double& score : calibration) score = static_cast<double>(random.below(30));
  ScoreWindow window(calibration, 100, 1);
  std::vector<double> newest;
  for (int t = 0; t < 400; ++t) {
    std::vector<double> plain = newest;
    if (newest.size() > 100) plain.assign(newest.end() - 100, newest.end());
    const double level = 0.001 * static_cast<double>(1 + random.below(998));
    if (t >= 100 || t <= 60) {  // in between some calibration scores have left, in unknown order
      if (t <= 60) plain.insert(plain.end(), calibration.begin(), calibration.end());
      ASSERT_EQ(window.size(), plain.size());
      ASSERT_EQ(window.radius(level), conformal_quantile(plain, Level(level)));
      const auto score = static_cast<double>(random.below(32));
      std::sort(plain.begin(), plain.end());
      ASSERT_EQ(window.p_value(score), conformal_p_value(plain, score).value());
      ASSERT_EQ(window.p_value(score) > level, score <= window.radius(level));
    }
    newest.push_back(static_cast<double>(random.below(30)));
    window.add(newest.back());
  }
  EXPECT_EQ(window.radius(0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(window.radius(1), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ScoreWindow(calibration, 10, 1).size(), 10u);
  EXPECT_THROW(ScoreWindow(calibration, 0, 1), Error);
}

}  // namespace
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// Against a plain list, with ties, infinities, and enough scores for blocks to split and to empty.
TEST(RankedScores, AreAPlainSortedList) {
  Random random(1);
  const auto draw = [&](uint64_t values) {
    const uint64_t kind = random.below(50);
    return kind == 0 ? kFar : kind == 1 ? -kFar : static_cast<double>(random.below(values));
  };
  for (const uint64_t values : {3u, 40u, 1000000u}) {
    std::vector<double> plain(random.below(3000));
    for (double& score : plain) score = draw(values);
    RankedScores ranked(plain);
    for (int step = 0; step < 6000; ++step) {
      if (!plain.empty() && random.below(100) < (step < 3000 ? 20 : 80)) {
        const size_t at = random.below(plain.size());
        ranked.erase(plain[at]);
        plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        plain.push_back(draw(values));
        ranked.insert(plain.back());
      }
      if (step % 97 != 0) continue;
      std::sort(plain.begin(), plain.end());
      const double at = draw(values);
      ASSERT_EQ(ranked.size(), plain.size());
      ASSERT_EQ(ranked.count_below(at),
                std::count_if(plain.begin(), plain.end(), [&](double s) { return s < at; }));
      ASSERT_EQ(ranked.count_at_most(at),
                std::count_if(plain.begin(), plain.end(), [&](double s) { return s <= at; }));
      if (plain.empty()) continue;
      const size_t k = random.below(plain.size());
      ASSERT_EQ(ranked.kth(k), plain[k]);
    }
  }
}

TEST(RankedScores, RefuseWhatIsNotThere) {
  RankedScores ranked({1, 2, 4});
  EXPECT_THROW(ranked.erase(3), Error);
  EXPECT_THROW(ranked.erase(5), Error);
  EXPECT_THROW(ranked.kth(3), Error);
  EXPECT_THROW(ranked.insert(std::nan("")), Error);
  EXPECT_THROW(RankedScores({1, std::nan("")}), Error);
}

// A bag of 5,000 whose scores only grow, each new one for an old one at random: blocks that have
// lost most of their scores are joined.
TEST(RankedScores, NeedNoMoreBlocksThanScoresWarrant) {
  Random random(2);
  RankedScores ranked;
  for (int step = 0; step < 100'000; ++step) {
    ranked.insert(step);
    if (ranked.size() > 5'000) ranked.erase(ranked.kth(random.below(ranked.size())));
    ASSERT_LE(ranked.blocks(), ranked.size() / 256 + 1);
  }
  const std::vector<double> sorted = ranked.sorted();
  EXPECT_EQ(sorted.size(), 5'000u);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  for (size_t i = 0; i < sorted.size(); i += 999) EXPECT_EQ(ranked.kth(i), sorted[i]);
}

}  // namespace
}  // namespace fcp
