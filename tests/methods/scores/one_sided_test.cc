#include "fcp/methods/scores/one_sided.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/coverage_law.h"
#include "fcp/methods/scores/score_table.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::DoubleEq;

auto both(double first, double second) {
  return testing::ElementsAre(DoubleEq(first), DoubleEq(second));
}

constexpr std::array kEnds = {BoundSide::kLower, BoundSide::kUpper};

// Every number that the law turns on: the scores, their neighbours, and radii of all sizes.
std::vector<double> all_radii(Random& random, const std::vector<double>& scores) {
  std::vector<double> radii = {-kForever, -1e300, -1, 0, 1, 1e300, kForever, random.normal()};
  for (const double score : scores) {
    radii.insert(radii.end(), {score, std::nextafter(score, -kForever)});
  }
  return radii;
}

// y = v, with the quantiles y ∓ 1 beside it, and σ = 2.
std::shared_ptr<const Network> plain_head() {
  Graph graph = linear_head(torch::ones({1, 1}), torch::zeros({1}));
  add_high_output(graph, torch::ones({1, 1}), torch::full({1}, 2.0F));
  const auto constant = [&](const std::string& name, const torch::Tensor& values) {
    graph.initializers[name + "_w"] = torch::zeros({values.size(0), 1});
    graph.initializers[name + "_b"] = values;
    graph.nodes.push_back(
        make_node("Gemm", {"x", name + "_w", name + "_b"}, {name}, {{"transB", int64_t{1}}}));
    graph.outputs.push_back(make_info(name, {kDynamic, values.size(0)}));
  };
  constant(kSpreadOutput, torch::full({1}, 2.0F));
  constant(kQuantilesOutput, torch::tensor({-3.0F, -1.0F, 1.0F, 5.0F}));
  return network_of(graph);
}

TEST(OneSided, ABoundMayLieOnEitherSideOfThePrediction) {
  const torch::Tensor v = torch::tensor({{10.0F}, {10.0F}});
  const torch::Tensor y = torch::tensor({{13.0}, {6.0}}, torch::kDouble);
  const auto scores_of = [&](ScoreOptions options, BoundSide side) {
    options.output = "y";
    options.side = side;
    return make_score(options, plain_head())->score(v, y);
  };
  EXPECT_THAT(scores_of(ResidualOptions{}, BoundSide::kUpper), both(3, -4));
  EXPECT_THAT(scores_of(ResidualOptions{}, BoundSide::kLower), both(-3, 4));
  EXPECT_THAT(scores_of(SpreadOptions{}, BoundSide::kUpper), both(1.5, -2));
  const CqrOptions cqr{.low = "y", .high = "high"};  // 10 and 12
  EXPECT_THAT(scores_of(cqr, BoundSide::kUpper), both(1, -6));
  EXPECT_THAT(scores_of(cqr, BoundSide::kLower), both(-3, 4));
  ScoreOptions upper(ResidualOptions{}, {.output = "y", .side = BoundSide::kUpper});
  const Regions regions = make_score(upper, plain_head())->region(v, -4.0);
  EXPECT_TRUE((regions.lower == -kForever).all().item<bool>());
  EXPECT_TRUE((regions.upper == 6).all().item<bool>());
  EXPECT_EQ(regions.side, BoundSide::kUpper);
  EXPECT_TRUE((region_lengths(regions) == -4).all().item<bool>());
  EXPECT_TRUE(region_costs(regions, y).equal(torch::tensor({{-7.0}, {0.0}}, torch::kDouble)));
}

// Wild heads, every score that has one end, both ends.
TEST(Law, OneSided) {
  Random random(61);
  int pairs = 0;
  for (int i = 0; i < 36 && !testing::Test::HasFailure(); ++i) {
    const int64_t outputs = 1 + i % 3;
    Graph graph = wild_quantile_head(random, outputs);
    add_linear_output(random, graph, kSpreadOutput, outputs, "Exp");
    add_linear_output(random, graph, kQuantilesOutput, 5 * outputs, "");
    add_linear_output(random, graph, kRectifierOutput, 1, "Softplus");
    std::vector<ScoreOptions> all = {ResidualOptions{},
                                     ResidualOptions{.normalize = kSpreadOutput},
                                     SpreadOptions{},
                                     QuantilesOptions{.tail = 0.1},
                                     DensityOptions{},
                                     LinearizedOptions{},
                                     LinearizedOptions{.floor = 1, .slope = 0.5},
                                     CqrOptions{.low = "y", .high = "high"}};
    const size_t plain = all.size();
    for (size_t k = 0; k < plain; ++k) {
      all.push_back(all[k]);
      all.back().rectifier = kRectifierOutput;
    }
    for (ScoreOptions options : all) {
      options.output = "y";
      options.side = kEnds[static_cast<size_t>(i % 2)];
      const auto head = network_of(graph_for_score(graph, options));
      HeadRows rows = wild_rows(random, *head, 12);
      rows.features = rows.features.clamp(-3, 3);
      const auto score = make_score(options, head);
      ASSERT_EQ(score->sides(), 1) << options.name();
      const std::vector<double> scores = score->score(rows.features, rows.truth);
      pairs += expect_law(*score, rows, scores, all_radii(random, scores));
      rows.truth = rows.truth.to(torch::kFloat);
      EXPECT_EQ(scores, score->score(rows.features, rows.truth)) << options.name();
    }
  }
  EXPECT_GT(pairs, 150000);
}

TEST(Law, OneSidedBands) {
  Random random(62);
  int pairs = 0;
  for (int i = 0; i < 16 && !testing::Test::HasFailure(); ++i) {
    const auto head = network_of(wild_quantile_head(random, 1 + i % 2));
    HeadRows rows = wild_rows(random, *head, 8);
    for (ScoreOptions options : {ScoreOptions(NestedOptions{}, {.output = "y"}),
                                 ScoreOptions(FeatureCqrOptions{.low = "y", .high = "high"})}) {
      options.side = kEnds[static_cast<size_t>(i % 2)];
      const auto score = make_score(options, head);
      const std::vector<double> scores = score->score(rows.features, rows.truth);
      pairs += expect_law(*score, rows, scores, all_radii(random, scores));
    }
  }
  EXPECT_GT(pairs, 4000);
}

TEST(Law, AsymmetricEnds) {
  Random random(63);
  int pairs = 0;
  for (int i = 0; i < 24; ++i) {
    const int64_t outputs = 1 + i % 3;
    const Graph graph = wild_feature_heads(random, outputs, 5);
    for (const ScoreOptions& options : {ScoreOptions(ResidualOptions{.asymmetric = true}),
                                        ScoreOptions(SpreadOptions{.asymmetric = true}),
                                        ScoreOptions(QuantilesOptions{.asymmetric = true})}) {
      const auto head = network_of(graph_for_score(graph, options));
      const HeadRows rows = feature_head_rows(random, *network_of(graph), 12);
      const auto score = make_score(options, head);
      ASSERT_EQ(score->sides(), 2);
      pairs += expect_side_law(*score, rows, score->score(rows.features, rows.truth), random, 20);
    }
  }
  EXPECT_GT(pairs, 10000);
}

TEST(OneSided, NotANumberStaysNotANumber) {
  Random random(64);
  const Graph graph = wild_feature_heads(random, 2, 5);
  for (ScoreOptions options : {ScoreOptions(ResidualOptions{}), ScoreOptions(SpreadOptions{}),
                               ScoreOptions(QuantilesOptions{}), ScoreOptions(NestedOptions{}),
                               ScoreOptions(LinearizedOptions{}), ScoreOptions(DensityOptions{})}) {
    options.side = BoundSide::kUpper;
    const auto head = network_of(graph_for_score(graph, options));
    HeadRows made = wild_rows(random, *head, 4);
    made.truth[1][1] = std::nan("");
    made.features[3][0] = std::nanf("");
    const std::vector<double> scores = make_score(options, head)->score(made.features, made.truth);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(scores[i]), i % 2 == 1) << options.name();
  }
}

// The coverage of n calibration rows is Beta(k, n + 1 − k): with 99 rows at 0.1 and 20,000 fresh
// ones each, 200 means of 0.9 have a deviation of 0.03/√200; five of them are 0.0106, and the
// chance of a false alarm below 1e-6. The network predicts too much, so a bound has to lie below
// its prediction.
TEST(OneSided, BoundsCoverAtTheirLevel) {
  Random random(65);
  for (const BoundSide side : kEnds) {
    const ScoreOptions options(ResidualOptions{}, {.side = side});
    const auto score =
        make_score(options, network_of(linear_head(torch::ones({1, 1}), torch::full({1}, 9.0F))));
    double coverage = 0;
    constexpr int kRepeats = 200;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const auto draw = [&](int64_t rows) {
        const torch::Tensor x = random_normal(random, {rows, 1});
        return std::pair(x, x + random_normal(random, {rows, 1}));
      };
      const auto [x, y] = draw(99);
      std::vector<double> scores = score->score(x, y);
      std::sort(scores.begin(), scores.end());
      const auto [fresh, truth] = draw(2000);
      const Regions regions = score->region(fresh, scores[conformal_rank(Level(0.1), 99) - 1]);
      EXPECT_EQ(side == BoundSide::kUpper, region_lengths(regions)[0][0].item<double>() < 0);
      coverage += in_regions(regions, truth).to(torch::kDouble).mean().item<double>() / kRepeats;
    }
    EXPECT_NEAR(coverage, 0.9, 0.011) << side_name(side);
  }
}

TEST(OneSided, AUnionHasNoOneEnd) {
  Random random(66);
  const Graph graph = wild_feature_heads(random, 1, 5);
  const ScoreOptions options(DensityOptions{.level_set = true}, {.side = BoundSide::kUpper});
  EXPECT_THROW(make_score(options, network_of(graph_for_score(graph, options))), Error);
}

}  // namespace
}  // namespace fcp
