#include "fcp/data/folds.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace fcp {
namespace {

std::vector<size_t> joined(std::vector<std::vector<size_t>> folds) {
  std::vector<size_t> all;
  for (const auto& fold : folds) all.insert(all.end(), fold.begin(), fold.end());
  std::sort(all.begin(), all.end());
  return all;
}

bool distinct_below(const std::vector<size_t>& sorted, size_t rows) {
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
         (sorted.empty() || sorted.back() < rows);
}

TEST(PaperFolds, HaveTheSizesOfTheOfficialCode) {
  const size_t sizes[][3] = {{1994, 797, 399},
                             {2161, 864, 433},
                             {45730, 18292, 9146},
                             {10886, 4354, 2178},
                             {10000, 4000, 2000},
                             {0, 0, 0},
                             {1, 0, 1}};
  for (const auto& [rows, half, test] : sizes) {
    const Folds folds = paper_folds(rows, 0);
    EXPECT_EQ(folds.training.size(), half);
    EXPECT_EQ(folds.calibration.size(), half);
    EXPECT_EQ(folds.test.size(), test);
    EXPECT_TRUE(distinct_below(joined({folds.training, folds.calibration, folds.test}), rows));
  }
}

TEST(PaperFolds, DependOnTheSeedAlone) {
  EXPECT_EQ(paper_folds(1000, 3).test, paper_folds(1000, 3).test);
  EXPECT_NE(paper_folds(1000, 3).test, paper_folds(1000, 4).test);
}

// A row is in the test fold for a fifth of the seeds. Over 4000 seeds the share of a given row
// deviates by more than 0.04 (6.3 standard deviations) with a chance below 3e-10; ten rows.
TEST(PaperFolds, PutEveryRowEverywhere) {
  std::vector<int> in_test(10);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    for (const size_t row : paper_folds(10, seed).test) ++in_test[row];
  }
  for (const int count : in_test) EXPECT_NEAR(count / 4000.0, 0.2, 0.04);
}

TEST(GroupedOrder, KeepsGroupsTogether) {
  const std::vector<int64_t> groups = {5, 1, 5, 2, 1, 5};
  std::set<std::vector<size_t>> orders;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const GroupedOrder order = grouped_order(groups, seed);
    EXPECT_TRUE(distinct_below(order.rows, 6));
    for (size_t i = 0; i < order.rows.size(); ++i) {
      const bool begins = i == 0 || groups[order.rows[i]] != groups[order.rows[i - 1]];
      EXPECT_EQ(order.first[i], begins ? i : order.first[i - 1]);
    }
    orders.insert(order.rows);
  }
  EXPECT_EQ(orders.size(), 6u) << "all orders of three groups; one is missing in 200 draws with a "
                                  "chance below 1e-14";
}

}  // namespace
}  // namespace fcp
