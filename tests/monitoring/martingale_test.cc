#include "fcp/monitoring/martingale.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/monitoring/streams.h"

namespace fcp {
namespace {

// Against money followed start by start: a plain jumper from each round on, weighted.
TEST(Jumper, IsTheMixtureOverItsStarts) {
  Random random(6);
  constexpr size_t kBets = 3, kRounds = 60;
  constexpr double kRate = 0.05;
  Jumper jumper(kBets, kRate);
  std::vector<std::vector<double>> starts;
  for (size_t t = 1; t <= kRounds; ++t) {
    std::vector<double> factors(kBets);
    for (double& factor : factors) factor = 2 * random.uniform();
    const auto rounds = static_cast<double>(t);
    starts.emplace_back(kBets, 1 / (rounds * (rounds + 1)) / kBets);
    double total = 1 / (rounds + 1);
    for (std::vector<double>& money : starts) {
      const double sum = money[0] + money[1] + money[2];
      for (size_t i = 0; i < kBets; ++i) {
        money[i] = ((1 - kRate) * money[i] + kRate * sum / kBets) * factors[i];
        total += money[i];
      }
    }
    jumper.step(factors);
    ASSERT_NEAR(jumper.log_capital(), std::log(total), 1e-12);
  }
}

TEST(Jumper, NeitherOverflowsNorVanishes) {
  Jumper rich(2, 0.01), poor(2, 0.01);
  for (int t = 0; t < 20000; ++t) {
    rich.step(std::vector<double>{2, 1});
    poor.step(std::vector<double>{0.5, 0.25});
  }
  EXPECT_NEAR(rich.log_capital() / 20000, std::log(2 * 0.995), 0.01);
  EXPECT_GT(poor.log_capital(), -std::log(20001.0) - 1e-9);
  EXPECT_LT(poor.log_capital(), -std::log(20001.0) + 0.01);
  EXPECT_THROW(rich.step(std::vector<double>{1}), Error);
  EXPECT_THROW(Jumper(0, 0.1), Error);
  EXPECT_THROW(Jumper(2, 0), Error);
}

// The mean of the capital over all p-values of a grid is what it was: a martingale.
TEST(Martingale, IsFair) {
  Random random(7);
  Martingale martingale;
  for (int t = 0; t < 20; ++t) {
    constexpr int kGrid = 4000;
    double mean = 0;
    for (int i = 0; i < kGrid; ++i) {
      Martingale next = martingale;
      next.step((i + 0.5) / kGrid);
      mean += std::exp(next.log_capital()) / kGrid;
    }
    ASSERT_NEAR(mean, std::exp(martingale.log_capital()), 1e-6);
    martingale.step(random.uniform() * random.uniform());
  }
}

struct StreamAlarms {
  size_t strict = 0;  // ε = 0.01
  size_t loose = 0;   // ε = 0.2
};

// 10,000 streams of exchangeable scores after 100 calibration scores, with a bag that loses as many
// as come, four times as many as it has; fails by chance with probability at most 2e-6.
TEST(Martingale, RaisesFalseAlarmsNoMoreOftenThanItSays) {
  constexpr size_t kStreams = 10000, kRows = 400;
  StreamAlarms alarms;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    Random random(1000 + stream);
    std::vector<double> calibration(100);
    for (double& score : calibration) score = std::abs(random.normal());
    Transducer transducer(calibration, stream, /*most=*/100);
    Martingale martingale;
    CapitalWatch strict(0.01), loose(0.2);
    for (size_t t = 0; t < kRows; ++t) {
      martingale.step(transducer.next(std::abs(random.normal())));
      const double now = martingale.log_capital();
      strict.see(t, now);
      loose.see(t, now);
    }
    alarms.strict += strict.crossed() ? 1 : 0;
    alarms.loose += loose.crossed() ? 1 : 0;
  }
  EXPECT_LE(alarms.strict, most_alarms(kStreams, 0.01));
  EXPECT_LE(alarms.loose, most_alarms(kStreams, 0.2));
  EXPECT_GT(alarms.loose, 0u) << "a martingale that never moves would pass too";
}

// The row at which scores that are `factor` times as large from row `change` on are noticed.
size_t noticed_at(size_t change, double factor, uint64_t seed, size_t most) {
  Random random(seed);
  std::vector<double> calibration(500);
  for (double& score : calibration) score = std::abs(random.normal());
  Transducer transducer(calibration, seed, most);
  Martingale martingale;
  CapitalWatch watch(0.01);
  for (size_t t = 0; t < change + 5000; ++t) {
    martingale.step(transducer.next(std::abs(random.normal()) * (t < change ? 1 : factor)));
    if (watch.see(t, martingale.log_capital())) return t;
  }
  return change + 5000;
}

// Of 20 streams none is to be noticed before the change (by Ville at most 0.01 each) but two, and
// all within so many rows after it, however late the change is, also where the bag has forgotten
// most rows.
TEST(Martingale, NoticesChangesEarlyAndLate) {
  for (const size_t change : {0u, 1000u, 20000u}) {
    const size_t most = change == 0 ? 10000 : 1000;
    std::vector<size_t> delays;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const size_t row = noticed_at(change, 2, 50 + seed, most);
      delays.push_back(row < change ? 0 : row - change);
    }
    std::sort(delays.begin(), delays.end());
    EXPECT_LT(delays[19], 400u) << "change at " << change;
    EXPECT_GT(delays[2], 0u) << "change at " << change;
  }
}

TEST(CapitalWatch, SaysWhenItRoseAndWhenItCrossed) {
  CapitalWatch watch(0.1);
  const std::vector<double> capital = {-1, -2, -0.5, 1, 2.2, 2.4, 5};
  std::vector<bool> crossed;
  for (size_t row = 0; row < capital.size(); ++row) crossed.push_back(watch.see(row, capital[row]));
  EXPECT_EQ(crossed, (std::vector<bool>{false, false, false, false, false, true, false}));
  EXPECT_EQ(watch.row(), 5u);
  EXPECT_EQ(watch.since(), 1u);
  EXPECT_THROW(CapitalWatch(0), Error);
  EXPECT_THROW(Martingale().step(1.5), Error);
}

}  // namespace
namespace {

// Against a plain list that loses one of its scores, all alike, when it has more than `most`.
TEST(Transducer, IsItsFormula) {
  for (const size_t most : {1000u, 45u, 0u}) {
    Random random(3);
    std::vector<double> bag(30);
    for (double& score : bag) score = static_cast<double>(random.below(6));
    const size_t largest = std::max<size_t>(most, bag.size());
    Transducer transducer(bag, 9, most);
    Random coins(9);
    for (int t = 0; t < 300; ++t) {
      const auto score = static_cast<double>(random.below(7));
      const double coin = 1 - coins.uniform();
      double greater = 0, equal = 1;
      for (const double other : bag) {
        greater += other > score ? 1 : 0;
        equal += other == score ? 1 : 0;
      }
      const double expected = (greater + coin * equal) / static_cast<double>(bag.size() + 1);
      ASSERT_DOUBLE_EQ(transducer.next(score), expected);
      bag.push_back(score);
      if (bag.size() <= largest) continue;
      std::sort(bag.begin(), bag.end());
      bag.erase(bag.begin() + static_cast<std::ptrdiff_t>(coins.below(bag.size())));
    }
  }
}

// χ² over 10 × 10 cells of pairs of p-values that are `apart` rows from each other, of scores that
// take `values` different values.
double pair_chi(size_t most, size_t apart, uint64_t values) {
  Random random(4);
  Transducer transducer({}, 5, most);
  std::vector<double> p(40000 + apart);
  for (double& one : p) {
    one = transducer.next(static_cast<double>(random.below(values)));
    EXPECT_GT(one, 0);
    EXPECT_LE(one, 1);
  }
  std::vector<double> cells(100);
  const auto cell = [](double one) { return std::min<size_t>(9, static_cast<size_t>(one * 10)); };
  double pairs = 0;
  for (size_t t = 0; t + apart < p.size(); t += 2 * apart) {
    for (size_t i = t; i < t + apart && i + apart < p.size(); ++i, ++pairs) {
      cells[cell(p[i]) * 10 + cell(p[i + apart])] += 1;
    }
  }
  double chi = 0;
  for (const double count : cells) chi += (count - pairs / 100) * (count - pairs / 100);
  return chi / (pairs / 100);
}

// The p-values are uniform and independent, ties included, however small the bag is; the smaller it
// is, the more one that lost its oldest scores would give itself away. 99 degrees of freedom: above
// 190 with probability below 1e-6 in each of the 16 cases.
TEST(Transducer, GivesIndependentUniformPValues) {
  for (const size_t most : {1u, 3u, 30u, 700u}) {
    for (const size_t apart : {1u, 2u}) {
      for (const uint64_t values : {5u, 1'000'000u}) {
        EXPECT_LT(pair_chi(most, apart, values), 190) << most << " " << apart << " " << values;
      }
    }
  }
}

TEST(Transducer, GoesOnFromItsState) {
  Random random(6);
  std::vector<double> reference(50);
  for (double& score : reference) score = random.normal();
  Transducer one(reference, 7, 60);
  for (int t = 0; t < 600'000; ++t) one.next(t);  // more than a million coins
  for (int t = 0; t < 200; ++t) one.next(random.normal());
  SavedState written;
  one.exchange(written);
  const std::string bytes = written.take();
  Transducer other(reference, 7, 60);
  SavedState read(bytes);
  other.exchange(read);
  read.end();
  for (int t = 0; t < 200; ++t) {
    const double score = random.normal();
    ASSERT_EQ(one.next(score), other.next(score));
  }
  Transducer larger(reference, 7, 61);
  SavedState again(bytes);
  EXPECT_THROW(larger.exchange(again), Error);
}

}  // namespace
}  // namespace fcp
