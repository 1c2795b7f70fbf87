#include "fcp/methods/scores/support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/score_table.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::ElementsAre;

std::string complaint(const std::string& text) {
  try {
    parse_support(text, false);
  } catch (const OptionError& error) {
    return error.what();
  }
  return "";
}

TEST(Support, Texts) {
  EXPECT_FALSE(parse_support("", false).known());
  EXPECT_TRUE(parse_support("", true).known());
  const Support from = parse_support("0:", false), both = parse_support("-1.5:1e2", false);
  EXPECT_EQ(from.lower, 0);
  EXPECT_EQ(from.upper, kForever);
  EXPECT_EQ(both.lower, -1.5);
  EXPECT_EQ(both.upper, 100);
  EXPECT_EQ(parse_support(":7", false).lower, -kForever);
  for (const char* text : {"0", ":", "a:", "1:1", "2:1", "0:1:2", "nan:", "0:inf", "0: 1"}) {
    EXPECT_THAT(complaint(text),
                testing::StartsWith(concat("support: found ", text, ", expected")));
  }
}

// 0.1 as float32 is above 0.1: what a file of such numbers holds is inside.
TEST(Support, HoldsTheFloatsThatItsTextMeans) {
  const Support support = parse_support("0.1:0.7", false);
  EXPECT_TRUE(support.holds(static_cast<double>(0.1F)));
  EXPECT_TRUE(support.holds(static_cast<double>(0.7F)));
  EXPECT_FALSE(support.holds(0.099));
  EXPECT_FALSE(support.holds(0.701));
}

TEST(Support, RegionsKeepToIt) {
  const auto head = network_of(linear_head(torch::ones({1, 1}), torch::zeros({1})));
  const ScoreOptions options(ResidualOptions{}, {.support = "0:10", .integer = true});
  const auto score = make_score(options, head);
  const torch::Tensor v = torch::tensor({{0.5F}, {5.25F}, {9.75F}, {-4.0F}});
  const Regions regions = score->region(v, 2.5);
  EXPECT_TRUE(regions.lower.equal(torch::tensor({{0.0}, {3.0}, {8.0}, {0.0}}, torch::kDouble)));
  EXPECT_TRUE(regions.upper.equal(torch::tensor({{3.0}, {7.0}, {10.0}, {-2.0}}, torch::kDouble)));
  const Regions all = score->region(v, kForever);
  EXPECT_TRUE((all.lower == 0).all().item<bool>() && (all.upper == 10).all().item<bool>());
  const torch::Tensor y = torch::tensor({{-1.0}, {5.5}, {11.0}, {3.0}}, torch::kDouble);
  EXPECT_THAT(score->score(v, y), ElementsAre(kForever, kForever, kForever, 7));
}

// The truth of every kept row is in the support: then the law holds at every radius, and every
// truth that the region of all numbers holds is in the smaller one.
TEST(Law, Support) {
  Random random(71);
  int pairs = 0, shorter = 0;
  for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
    const int64_t outputs = 1 + i % 2;
    const Graph graph = wild_feature_heads(random, outputs, 7);
    for (ScoreOptions options :
         {ScoreOptions(ResidualOptions{}), ScoreOptions(QuantilesOptions{}),
          ScoreOptions(DensityOptions{.level_set = true}), ScoreOptions(NestedOptions{}),
          ScoreOptions(ResidualOptions{}, {.side = BoundSide::kUpper})}) {
      const auto head = network_of(graph_for_score(graph, options));
      HeadRows rows = feature_head_rows(random, *network_of(graph), 12);
      rows.truth = rows.truth.abs().clamp_max(1e6);
      if (i % 4 >= 2) rows.truth = rows.truth.round();
      const auto plain = make_score(options, head);
      options.support = "0:1e6";
      options.integer = i % 4 >= 2;
      const auto score = make_score(options, head);
      const std::vector<double> scores = score->score(rows.features, rows.truth);
      EXPECT_EQ(scores, plain->score(rows.features, rows.truth));
      std::vector<double> radii = exact_radii(random, scores, 6);
      pairs += expect_law(*score, rows, scores, radii);
      for (const double radius : radii) {
        const Regions wide = plain->region(rows.features, radius);
        const Regions close = score->region(rows.features, radius);
        const torch::Tensor lost =
            in_regions(wide, rows.truth).logical_and(in_regions(close, rows.truth).logical_not());
        EXPECT_FALSE(lost.any().item<bool>()) << options.name();
        if (options.side == BoundSide::kBoth) {
          const torch::Tensor saved = region_lengths(wide) - region_lengths(close);
          EXPECT_FALSE((saved < 0).any().item<bool>()) << options.name();
          shorter += static_cast<int>((saved > 0).any().item<bool>());
        }
      }
    }
  }
  EXPECT_GT(pairs, 10000);
  EXPECT_GT(shorter, 100);
}

TEST(Support, PartsOfAUnionAreCut) {
  Random random(72);
  const Graph graph = wild_feature_heads(random, 1, 9);
  ScoreOptions options(DensityOptions{.level_set = true}, {.support = "0:"});
  const auto head = network_of(graph_for_score(graph, options));
  const HeadRows rows = feature_head_rows(random, *network_of(graph), 30);
  for (const double radius : {0.01, 0.1, 1.0, 10.0}) {
    const Regions regions = make_score(options, head)->region(rows.features, radius);
    const torch::Tensor from = regions.parts.select(3, 0), to = regions.parts.select(3, 1);
    const torch::Tensor there = from <= to;
    EXPECT_FALSE((from < 0).any().item<bool>());
    // Ascending, then the empty ones.
    EXPECT_FALSE((from.slice(2, 1) < from.slice(2, 0, -1)).any().item<bool>());
    const torch::Tensor any = there.any(2);
    EXPECT_TRUE(regions.lower.isinf().equal(any.logical_not()));
  }
}

}  // namespace
}  // namespace fcp
