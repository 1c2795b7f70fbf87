#include "fcp/data/split.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/data/csv_column.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void expect_partition(const std::vector<std::vector<size_t>>& parts, size_t rows) {
  std::set<size_t> all;
  size_t count = 0;
  for (const auto& part : parts) {
    EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    all.insert(part.begin(), part.end());
    count += part.size();
  }
  EXPECT_EQ(count, rows);
  EXPECT_EQ(all.size(), rows);
}

TEST(Split, AtRandomBySeed) {
  const auto parts = split_rows(101, {3, 1, 1}, 7);
  expect_partition(parts, 101);
  EXPECT_EQ(parts[0].size(), 61u);
  EXPECT_EQ(parts[1].size(), 20u);
  EXPECT_EQ(parts, split_rows(101, {6, 2, 2}, 7));
  EXPECT_NE(parts, split_rows(101, {3, 1, 1}, 8));
}

TEST(Split, StrataAreInEveryPartUpToARow) {
  for (size_t rows : {30u, 97u, 500u}) {
    SplitColumns columns;
    for (size_t i = 0; i < rows; ++i)
      columns.strata.push_back(i % 10 == 0 ? "rare" : i % 3 ? "a" : "b");
    const auto parts = split_rows(rows, {3, 1, 1}, 3, columns);
    expect_partition(parts, rows);
    std::map<std::string, double> total;
    for (const std::string& name : columns.strata) ++total[name];
    for (size_t p = 0; p < 3; ++p) {
      std::map<std::string, double> found;
      for (const size_t row : parts[p]) ++found[columns.strata[row]];
      for (const auto& [name, count] : total) {
        EXPECT_NEAR(found[name], count * (p == 0 ? 0.6 : 0.2), 2.001) << name << " of " << rows;
      }
    }
  }
}

// Also of strata of one to three rows. Each count is binomial: five and a half deviations have a
// chance of 4e-8, 24 · 3 of them of 3e-6 at most, and the seeds are fixed.
TEST(Split, EveryRowOfAStratumHasTheSameChance) {
  SplitColumns columns;
  for (size_t i = 0; i < 24; ++i) {
    columns.strata.push_back(i < 1 ? "one" : i < 3 ? "two" : i < 6 ? "three" : "rest");
  }
  constexpr uint64_t kSeeds = 4000;
  std::vector<std::vector<double>> found(3, std::vector<double>(24));
  std::vector<double> sizes(3);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto parts = split_rows(24, {3, 1, 1}, seed, columns);
    for (size_t p = 0; p < 3; ++p) {
      sizes[p] = static_cast<double>(parts[p].size());
      for (const size_t row : parts[p]) ++found[p][row];
    }
  }
  for (size_t p = 0; p < 3; ++p) {
    const double share = sizes[p] / 24;
    const double deviation = std::sqrt(kSeeds * share * (1 - share));
    for (size_t row = 0; row < 24; ++row) {
      EXPECT_NEAR(found[p][row], kSeeds * share, 5.5 * deviation) << p << ' ' << row;
    }
  }
}

TEST(Split, GroupsStayTogether) {
  SplitColumns columns;
  for (size_t i = 0; i < 400; ++i) columns.groups.push_back("g" + std::to_string(i % 37));
  const auto parts = split_rows(400, {2, 1, 1}, 5, columns);
  expect_partition(parts, 400);
  std::map<std::string, std::set<size_t>> places;
  for (size_t p = 0; p < 3; ++p) {
    EXPECT_NEAR(static_cast<double>(parts[p].size()), p == 0 ? 200 : 100, 22);
    for (const size_t row : parts[p]) places[columns.groups[row]].insert(p);
  }
  for (const auto& [name, found] : places) EXPECT_EQ(found.size(), 1u) << name;
}

TEST(Split, ByTimeTheOldestFirst) {
  const Folder folder;
  const std::string path =
      folder.write("t.csv", "when,a\n2024-03-01,1\n2023-01-01,2\n2024-01-01,3\n2025-01-01,4\n");
  const SplitColumns columns{.times = read_time_column(path, "when")};
  EXPECT_THAT(split_rows(4, {2, 1, 1}, 0, columns),
              ElementsAre(ElementsAre(1, 2), ElementsAre(0), ElementsAre(3)));
  const std::string bad = folder.write("b.csv", "when,a\n2024-03-01,1\nsoon,2\n");
  EXPECT_EQ(
      message_of(folder, [&] { read_time_column(bad, "when"); }),
      "b.csv: column 'when', row 1 (from 0): found 'soon', expected a time: a date or a number");
}

TEST(Split, ByTimeGroupsStandWhereTheirNewestRowDoes) {
  Random random(4);
  SplitColumns columns;
  for (size_t i = 0; i < 300; ++i) {
    const size_t group = random.below(40);
    columns.groups.push_back("g" + std::to_string(group));
    columns.times.push_back(static_cast<double>(group) + 30 * random.uniform());
  }
  const auto parts = split_rows(300, {3, 1, 1}, 0, columns);
  expect_partition(parts, 300);
  std::map<std::string, std::set<size_t>> places;
  std::vector<double> newest(3, -1e9);  // of the rows of a part
  std::vector<std::map<std::string, double>> last(3);
  for (size_t p = 0; p < 3; ++p) {
    EXPECT_NEAR(static_cast<double>(parts[p].size()), p == 0 ? 180 : 60, 15);
    for (const size_t row : parts[p]) {
      places[columns.groups[row]].insert(p);
      newest[p] = std::max(newest[p], columns.times[row]);
      double& own = last[p].try_emplace(columns.groups[row], -1e9).first->second;
      own = std::max(own, columns.times[row]);
    }
  }
  for (const auto& [name, found] : places) EXPECT_EQ(found.size(), 1u) << name;
  for (size_t p = 1; p < 3; ++p) {
    for (const auto& [name, time] : last[p]) EXPECT_LE(newest[p - 1], time) << name;
  }
}

TEST(Split, WritesFilesOfParts) {
  const Folder folder;
  const std::string path = folder.write("t.csv", "a,b\n1,\"x,1\"\n2,y\n3,z\n");
  const std::string folder_name = std::filesystem::path(path).parent_path();
  const std::vector<std::string> out{folder_name + "/p.csv", folder_name + "/q.csv"};
  write_parts(path, {{0, 2}, {1}}, out);
  EXPECT_THAT(read_csv_column(out[0], "b"), ElementsAre("x,1", "z"));
  EXPECT_THAT(read_csv_column(out[1], "b"), ElementsAre("y"));
}

TEST(Split, SharesAreRatios) {
  const Folder folder;
  EXPECT_THAT(parse_shares("2:2:1"), ElementsAre(2, 2, 1));
  EXPECT_THAT(parse_shares("0.8:0.2"), ElementsAre(0.8, 0.2));
  for (const char* text : {"", "1", "1:0", "1:-1", "a:b", "1:", "inf:1"}) {
    EXPECT_THAT(message_of(folder, [&] { parse_shares(text); }), HasSubstr("shares: ")) << text;
  }
}

}  // namespace
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
