#include "fcp/methods/scores/density.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/quantiles.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using Grid = std::vector<double>;

std::vector<double> random_quantiles(Random& random, size_t count) {
  Grid q = {random.normal()};
  while (q.size() < count) {
    q.push_back(q.back() + (random.below(5) == 0 ? 0 : std::exp(2 * random.normal())));
  }
  return q;
}

TEST(Density, GrowsTowardsTheShorterGap) {
  // Gaps 4, 1, 2, 3: starts in [4, 5], then takes 2, 3, and 4 on the other side.
  const Grid q = {0, 4, 5, 7, 10};
  const GrownInterval grown(100, q);
  EXPECT_EQ(grown.at(0), (Interval{104.5, 104.5}));
  EXPECT_EQ(grown.at(0.5), (Interval{104.25, 104.75}));
  EXPECT_EQ(grown.at(1), (Interval{104, 105}));
  EXPECT_EQ(grown.at(1.5), (Interval{104, 106}));
  EXPECT_EQ(grown.at(2), (Interval{104, 107}));
  EXPECT_EQ(grown.at(3), (Interval{104, 110}));
  EXPECT_EQ(grown.at(3.5), (Interval{102, 110}));
  EXPECT_EQ(grown.at(4), (Interval{100, 110}));
  // Tails: scales 4 and 3; their first pieces are as dense as gaps of 8 and 6.
  EXPECT_EQ(grown.at(4.5), (Interval{100, 113}));
  EXPECT_EQ(grown.at(5), (Interval{96, 113}));
  EXPECT_TRUE(grown.at(-1e-300).empty());
  EXPECT_EQ(grown.at(1e9), Interval{});
  EXPECT_NEAR(grown.guess(113), 4.5, 1e-12);
}

// The window of so many neighbouring gaps that growing finds, against every order in which a gap
// that is next on one side was no longer than the one on the other.
TEST(Density, TakesGapsInTheOrderOfTheirLargestPredecessor) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const Grid q = random_quantiles(random, 2 + random.below(10));
    const GrownInterval grown(0, q);
    for (size_t count = 1; count < q.size(); ++count) {
      const Interval window = grown.at(static_cast<double>(count));
      size_t from = 0;
      while (from + count < q.size() &&
             !(q[from] == window.lower && q[from + count] == window.upper))
        ++from;
      if (window.lower < q.front() || window.upper > q.back()) continue;  // a dense tail came first
      ASSERT_LT(from + count, q.size()) << "not a window of " << count << " gaps";
    }
    double length = 0;
    for (double radius = 0; radius < static_cast<double>(q.size()) + 3; radius += 0.125) {
      const double next = grown.at(radius).length();
      EXPECT_GE(next, length);
      length = next;
    }
  }
}

TEST(Density, EqualQuantilesAreTakenFirst) {
  const Grid q = {-1, 0, 0, 0, 3};
  const GrownInterval grown(0, q);
  EXPECT_EQ(grown.at(2), (Interval{0, 0}));
  EXPECT_EQ(grown.at(3), (Interval{-1, 0}));
  EXPECT_EQ(GrownInterval(5, Grid{1, 1, 1}).at(2), (Interval{6, 6}));
  EXPECT_EQ(GrownInterval(5, Grid{1, 1, 1}).at(1000), Interval{});
}

TEST(Density, LevelSetsListEveryInterval) {
  const Grid q = {0, 1, 5, 6, 7, 20};  // dense in [0, 1] and [5, 7]
  const std::vector<Interval> two = density_level_set(0, q, 1);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0], (Interval{0, 1}));  // the tail of scale 1 starts here
  EXPECT_EQ(two[1], (Interval{5, 7}));
  EXPECT_EQ(density_level_set(0, q, 4), (std::vector<Interval>{{-1, 7}}));
  EXPECT_TRUE(density_level_set(0, q, 0.5).empty());
  EXPECT_EQ(density_level_set(0, q, 13).size(), 1U);
}

// y = 0, quantiles as given.
std::shared_ptr<const Network> constant_quantiles(const Grid& quantiles) {
  Graph graph = linear_head(torch::zeros({1, 2}), torch::zeros({1}));
  const auto count = static_cast<int64_t>(quantiles.size());
  graph.initializers["q_w"] = torch::zeros({count, 2});
  graph.initializers["q_b"] = torch::tensor(quantiles, torch::kDouble).to(torch::kFloat);
  graph.nodes.push_back(
      make_node("Gemm", {"x", "q_w", "q_b"}, {kQuantilesOutput}, {{"transB", int64_t{1}}}));
  graph.outputs.push_back(make_info(kQuantilesOutput, {kDynamic, count}));
  return network_of(graph);
}

TEST(Density, UnionsHaveTheLengthOfTheirParts) {
  const auto score =
      make_score(DensityOptions{.level_set = true}, constant_quantiles({0, 1, 5, 6, 7, 20}));
  const Regions regions = score->region(torch::zeros({3, 2}), 1.0);
  EXPECT_EQ(regions.parts.size(2), 2);
  EXPECT_EQ(region_lengths(regions).sum().item<double>(), 9);
  EXPECT_EQ(regions.lower[0].item<double>(), 0);
  EXPECT_EQ(regions.upper[0].item<double>(), 7);
  const torch::Tensor truth = torch::tensor({{0.5}, {3.0}, {5.0}}, torch::kDouble);
  EXPECT_TRUE(in_regions(regions, truth).equal(torch::tensor({true, false, true})));
  EXPECT_THAT(score->score(torch::zeros({3, 2}), truth), testing::ElementsAre(1, 4, 1));
  EXPECT_EQ(region_lengths(score->region(torch::zeros({1, 2}), 0.25)).item<double>(), 0);
}

// Two quantiles that cross keep their distance, so that intervals in proportion to it grow.
TEST(Density, QuantilesThatCrossArePutInOrder) {
  const auto pair = make_score(QuantilesOptions{}, constant_quantiles({1, -1}));
  EXPECT_EQ(region_lengths(pair->region(torch::zeros({1, 2}), 1.0)).item<double>(), 6);
  const auto head = constant_quantiles({0, 3, 2, 5});
  const QuantileRows rows = QuantileReader(head, "", kQuantilesOutput).read(torch::zeros({1, 2}));
  EXPECT_THAT(std::vector<double>(rows.quantiles(0, 0).begin(), rows.quantiles(0, 0).end()),
              testing::ElementsAre(0, 2, 3, 5));
}

TEST(Density, GridsMustFitTheOutputs) {
  const auto score = make_score(DensityOptions{}, constant_quantiles({1}));
  EXPECT_THROW(score->region(torch::zeros({1, 2}), 1.0), Error);
}

TEST(Quantiles, MoveInProportionToTheirDistance) {
  // Levels 1/6, …, 5/6; the tail 1/4 lies midway between the first two.
  const auto head = constant_quantiles({-4, -2, 0, 1, 3});
  const auto score = make_score(QuantilesOptions{.tail = 0.25}, head);
  const torch::Tensor v = torch::zeros({1, 2});
  const Regions flat = score->region(v, 0.0);
  EXPECT_EQ(flat.lower.item<double>(), -3);
  EXPECT_EQ(flat.upper.item<double>(), 2);
  const Regions wide = score->region(v, 1.0);
  EXPECT_EQ(wide.lower.item<double>(), -8);
  EXPECT_EQ(wide.upper.item<double>(), 7);
  EXPECT_THAT(score->score(v, torch::full({1, 1}, -0.5, torch::kDouble)),
              testing::ElementsAre(-0.5));
  EXPECT_TRUE((region_lengths(score->region(v, -0.6)) == 0).all().item<bool>());
  EXPECT_THROW(make_score(QuantilesOptions{.tail = 0.5}, head), Error);
}

TEST(Quantiles, AtAnyLevel) {
  const Grid q = {0, 10, 20};  // at 1/4, 1/2, 3/4
  EXPECT_EQ(quantile_at(q, 0.01), 0);
  EXPECT_EQ(quantile_at(q, 0.375), 5);
  EXPECT_EQ(quantile_at(q, 0.5), 10);
  EXPECT_EQ(quantile_at(q, 0.75), 20);
  EXPECT_EQ(quantile_at(q, 0.99), 20);
}

TEST(RegionDistances, AreThoseToTheNearestPart) {
  const torch::Tensor prediction = torch::zeros({4, 1}, torch::kDouble);
  const std::vector<Interval> parts = {{0, 1}, {3, 4}};
  const Regions unions = regions_of_unions(prediction, {parts, parts, parts, {}});
  const torch::Tensor y = torch::tensor({{0.5}, {2.5}, {6.0}, {1.0}}, torch::kDouble);
  EXPECT_TRUE(region_distances(unions, y).equal(
      torch::tensor({{0.0}, {0.5}, {2.0}, {HUGE_VAL}}, torch::kDouble)));
  const Regions hull{prediction, unions.lower, unions.upper, {}, {}};
  EXPECT_EQ(region_distances(hull, y)[1].item<double>(), 0);
}

}  // namespace
}  // namespace fcp
