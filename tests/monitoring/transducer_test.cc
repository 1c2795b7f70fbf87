#include "fcp/monitoring/transducer.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
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
