#include "fcp/methods/scores/feature_cqr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/options.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Pointwise;
using testing::ThrowsMessage;

torch::Tensor one_column(std::vector<double> values) {
  const auto rows = static_cast<int64_t>(values.size());
  return torch::tensor(values, torch::kDouble).reshape({rows, 1});
}

ScoreOptions feature_cqr_options(bool asymmetric) {
  ScoreOptions options = FeatureCqrOptions{};
  options.set(field::asymmetric, asymmetric);
  return options;
}

// low = w·v − 1, high = w'·v + 1 with norms of 4 and 8.
std::shared_ptr<const Network> dyadic_head() {
  Graph graph = linear_head(torch::tensor({{1.0f, -2.0f, 1.0f}}), torch::full({1}, -1.0f));
  add_high_output(graph, torch::tensor({{-4.0f, 0.0f, 4.0f}}), torch::ones({1}));
  return network_of(graph);
}

// A radius per side: (low − y) / ‖w‖₁ and (y − high) / ‖w'‖₁, negative where y is inside.
TEST(FeatureCqr, LinearHeadsByHand) {
  const auto score = make_score(feature_cqr_options(true), dyadic_head());
  ASSERT_EQ(score->sides(), 2);
  // At v = 0: low = −1, high = 1. At v = (1, 0, 2): low = 2, high = 5.
  const torch::Tensor v = torch::tensor(
      {{0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, {1.0f, 0.0f, 2.0f}});
  // One head's end is the band's as long as the other's, which moves twice as fast or half as
  // fast, stays inside: true of these.
  EXPECT_THAT(score->score(v, one_column({0, -2, 3, 3})),
              Pointwise(DoubleNear(1e-6), {-0.25, -0.125, 0.25, -0.375, -1.0, 0.25, -0.25, -0.25}));
  const auto symmetric = make_score(feature_cqr_options(false), dyadic_head());
  ASSERT_EQ(symmetric->sides(), 1);
  EXPECT_THAT(symmetric->score(v, one_column({0, -2, 3, 3})),
              Pointwise(DoubleNear(1e-6), {-0.125, 0.25, 0.25, -0.25}));
}

TEST(FeatureCqr, RegionsByHand) {
  const auto score = make_score(feature_cqr_options(true), dyadic_head());
  const torch::Tensor radii =
      torch::tensor({{0.25, 0.5}, {-0.25, -0.125}, {-0.5, kForever}}, torch::kDouble);
  const Regions regions = score->region(torch::zeros({3, 3}), radii);
  EXPECT_TRUE(torch::equal(regions.lower, one_column({-2, 0, 1})));
  EXPECT_TRUE(torch::equal(regions.upper, one_column({5, 0, kForever})));
  EXPECT_TRUE(torch::equal(regions.prediction, one_column({0, 0, 0})));
  // Shrunk further there is nothing between the ends.
  const Regions empty =
      make_score(feature_cqr_options(false), dyadic_head())->region(torch::zeros({1, 3}), -0.5);
  EXPECT_GT(empty.lower.item<double>(), empty.upper.item<double>());
}

// Heads of equal norm keep their distance, so that the closed form holds for all norms and bounds.
TEST(FeatureCqr, LinearHeadsInClosedForm) {
  Random random(1);
  const torch::Tensor weight = random_normal(random, {2, 5});
  Graph graph = linear_head(weight, torch::tensor({-1.0f, -2.0f}));
  add_high_output(graph, -weight, torch::tensor({1.0f, 3.0f}));
  const auto head = network_of(graph);
  // Features small enough for low ≤ high.
  const torch::Tensor v = 0.05 * random_normal(random, {30, 5});
  const Tensors outputs = head->run({v});
  const torch::Tensor low = outputs[0].to(torch::kDouble), high = outputs[1].to(torch::kDouble);
  ASSERT_TRUE((low < high).all().item<bool>());
  const torch::Tensor y = 3 * random_normal(random, {30, 2}).to(torch::kDouble);
  for (const BoundMethod method : {BoundMethod::kIbp, BoundMethod::kCrownIbp}) {
    for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
      const torch::Tensor w = weight.to(torch::kDouble).abs();
      const torch::Tensor dual = norm == Norm::kInf   ? w.sum(1)
                                 : norm == Norm::kTwo ? w.square().sum(1).sqrt()
                                                      : w.amax(1);
      ScoreOptions options = feature_cqr_options(true);
      options.find(field::bound)->method = method;
      options.set(field::norm, norm);
      options.set(field::floor, 0.5);
      options.set(field::slope, 1.5);
      const torch::Tensor reach = dual + 0.375;
      const torch::Tensor expected =
          torch::stack({((low - y) / reach).amax(1), ((y - high) / reach).amax(1)}, 1);
      const std::vector<double> scores = make_score(options, head)->score(v, y);
      const torch::Tensor found = torch::tensor(scores, torch::kDouble).reshape({30, 2});
      EXPECT_TRUE(torch::allclose(found, expected, 1e-5, 1e-5)) << bound_name(method);
      options.set(field::asymmetric, false);
      const torch::Tensor symmetric =
          torch::tensor(make_score(options, head)->score(v, y), torch::kDouble);
      EXPECT_TRUE(torch::allclose(symmetric, expected.amax(1), 1e-5, 1e-5)) << bound_name(method);
    }
  }
  EXPECT_TRUE(((low - y) < 0).logical_and(y < high).any().item<bool>());
}

// Quantiles that cross are taken in their order, as if the network had named them right.
TEST(FeatureCqr, CrossingQuantilesAreTakenInTheirOrder) {
  Random random(2);
  for (const BoundMethod method : {BoundMethod::kIbp, BoundMethod::kCrownIbp}) {
    for (const bool asymmetric : {false, true}) {
      const auto head = network_of(wild_quantile_head(random, 2));
      const HeadRows rows = wild_quantile_rows(random, *head, 10);
      ScoreOptions options = feature_cqr_options(asymmetric);
      options.find(field::bound)->method = method;
      options.set(field::low, "y");
      options.set(field::high, "high");
      const auto straight = make_score(options, head);
      std::swap(*options.find(field::low), *options.find(field::high));
      const auto crossed = make_score(options, head);
      EXPECT_THAT(crossed->score(rows.features, rows.truth),
                  ElementsAreArray(straight->score(rows.features, rows.truth)));
      EXPECT_TRUE(torch::equal(crossed->region(rows.features, 0.1).lower,
                               straight->region(rows.features, 0.1).lower));
    }
  }
}

// Features in another unit of 2^k: radii are in that unit too, to the last bit.
TEST(FeatureCqr, PowersOfTwoScaleTheRadius) {
  Random random(3);
  for (int i = 0; i < 10; ++i) {
    Graph graph = wild_quantile_head(random, 1 + i % 2);
    const HeadRows rows = wild_quantile_rows(random, *network_of(graph), 10);
    const ScoreOptions options = feature_cqr_options(i % 2 == 1);
    const auto score = make_score(options, network_of(graph));
    std::vector<double> expected = score->score(rows.features, rows.truth);
    const double unit = std::ldexp(1.0, i % 2 == 0 ? 9 : -9);
    for (auto& [name, tensor] : graph.initializers) {
      const bool first = name == graph.nodes.front().inputs[1] ||
                         (name == "w_high" && graph.nodes.back().inputs[0] == "x");
      if (first) tensor = tensor.tensor() / unit;
    }
    const auto scaled = make_score(options, network_of(graph));
    // Radii near the end of float32 overflow in one unit before the other.
    const auto bounded = [](double one) { return std::abs(one) < 1e30 ? one : kForever; };
    std::vector<double> found = scaled->score(rows.features * unit, rows.truth);
    for (double& one : expected) one = bounded(one * unit);
    for (double& one : found) one = bounded(one);
    EXPECT_THAT(found, ElementsAreArray(expected));
  }
}

// low = v − 1, high = v + 1. One step of rate ¼ goes half of the way to y.
struct PaperForm {
  PaperForm() {
    Graph graph = linear_head(torch::ones({1, 1}), torch::full({1}, -1.0f));
    add_high_output(graph, torch::ones({1, 1}), torch::ones({1}));
    options = feature_cqr_options(false);
    options.set(field::paper, true);
    options.set(field::steps, 1);
    options.set(field::step_rate, 0.25);
    head = network_of(graph);
    score = make_score(options, head);
  }

  ScoreOptions options;
  std::shared_ptr<const Network> head;
  std::unique_ptr<Score> score;
};

// Algorithm 4: the distance to the surrogate of each quantile, + where y is outside of it.
TEST(FeatureCqrByThePaper, SignsOfTheScore) {
  const PaperForm form;
  ASSERT_EQ(form.score->sides(), 2);
  const torch::Tensor v = torch::zeros({5, 1});
  EXPECT_THAT(form.score->score(v, one_column({-3, 0, 2, 1, -1})),
              ElementsAre(1, -2,       // below both
                          -0.5, -0.5,  // between
                          -1.5, 0.5,   // above both
                          -1, 0,       // on the high quantile
                          0, -1));     // on the low one
  ScoreOptions more = form.options;
  more.set(field::steps, 3);  // 7/8 of the way
  EXPECT_THAT(make_score(more, form.head)->score(v.narrow(0, 0, 1), one_column({-3})),
              ElementsAre(1.75, -3.5));
}

// Equation 5: the sign of the radius says which end of each quantile's band is taken.
TEST(FeatureCqrByThePaper, EndsOfTheRegion) {
  const PaperForm form;
  const torch::Tensor radii = torch::tensor(
      {{0.5, 0.25}, {-0.5, -0.25}, {1.0, -2.0}, {0.0, 0.0}, {kForever, 1.0}, {1.0, kForever}},
      torch::kDouble);
  const Regions regions = form.score->region(torch::zeros({6, 1}), radii);
  EXPECT_TRUE(torch::equal(regions.lower, one_column({-1.5, -0.5, -2, -1, -kForever, -2})));
  EXPECT_TRUE(torch::equal(regions.upper, one_column({1.25, 0.75, -1, 1, 2, kForever})));
  EXPECT_TRUE(torch::equal(regions.prediction, torch::zeros({6, 1}, torch::kDouble)));
}

TEST(FeatureCqrByThePaper, NeedsStepsAndOneOutput) {
  PaperForm form;
  form.options.set(field::steps, 0);
  EXPECT_THAT([&] { make_score(form.options, form.head); },
              ThrowsMessage<Error>("the paper's feature_cqr needs its number of steps; it was 0"));
  Random random(4);
  form.options.set(field::steps, 1);
  const auto wide = network_of(wild_quantile_head(random, 2));
  const HeadRows rows = wild_quantile_rows(random, *wide, 3);
  EXPECT_THAT([&] { make_score(form.options, wide)->score(rows.features, rows.truth); },
              ThrowsMessage<Error>("the paper's feature_cqr is for one output; found 2"));
}

TEST(FeatureCqrByThePaper, HasNoLaw) {
  const PaperForm form;
  EXPECT_FALSE(form.options.obeys_law());
  EXPECT_TRUE(feature_cqr_options(true).obeys_law());
  EXPECT_EQ(baseline_of(form.options)->name(), "cqr");
}

}  // namespace
}  // namespace fcp
