// feature_sampled: samples of the ball, the linear short cut, and the surrogate's distance by hand.
#include "fcp/methods/scores/feature_sampled.h"

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/labels.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"

namespace fcp {
namespace {

// ‖x‖ᴰ of a uniform point of the ball is uniform on [0, 1]; so is (x_0 + 1) / 2 in the cube. The
// distance exceeds the limit with a chance of at most 1e-6 (Massart) over the four questions.
TEST(FeatureSampled, SamplesAreUniformInTheBall) {
  constexpr int64_t kPoints = 20000;
  const double limit = std::sqrt(std::log(8e6) / (2.0 * kPoints));
  const auto distance = [](torch::Tensor values) {
    values = std::get<0>(values.to(torch::kDouble).sort());
    const torch::Tensor even = torch::arange(kPoints, torch::kDouble) / kPoints;
    return std::max((values - even).abs().max().item<double>(),
                    (values - even - 1.0 / kPoints).abs().max().item<double>());
  };
  const torch::Tensor cube = ball_samples(kPoints, 3, Norm::kInf, 1);
  EXPECT_LT(distance(cube.abs().amax(1).pow(3)), limit);
  EXPECT_LT(distance((cube.select(1, 2) + 1) / 2), limit);
  EXPECT_LT(distance(ball_samples(kPoints, 3, Norm::kTwo, 2).square().sum(1).pow(1.5)), limit);
  EXPECT_LT(distance(ball_samples(kPoints, 3, Norm::kOne, 3).abs().sum(1).pow(3)), limit);
}

// A Relu that changes nothing makes a head deep: both ways to the set must agree.
TEST(FeatureSampled, TheLinearShortCutIsTheSameSet) {
  Random random(1);
  for (int i = 0; i < 6; ++i) {
    const Graph linear = linear_head(random_normal(random, {7, 4}), random_normal(random, {7}));
    Graph deep = linear;
    deep.nodes[0].outputs[0] = "z";
    deep.initializers["far"] = torch::full({7}, 1e3f);
    deep.nodes.push_back(make_node("Add", {"z", "far"}, {"positive"}));
    deep.nodes.push_back(make_node("Relu", {"positive"}, {"y"}));
    FeatureSampledOptions options{.steps = 1};
    options.norm = i % 2 == 0 ? Norm::kInf : Norm::kTwo;
    options.samples = 300;
    const torch::Tensor features = random_normal(random, {8, 4});
    const double radius = 0.5 + random.uniform();
    EXPECT_TRUE(
        torch::equal(make_score(options, network_of(linear))->region(features, radius).members,
                     make_score(options, network_of(deep))->region(features, radius).members));
  }
}

TEST(FeatureSampled, SetsAtSpecialRadii) {
  Random random(2);
  const auto head = network_of(linear_head(random_normal(random, {4, 3}), torch::zeros({4})));
  const auto score = make_score(FeatureSampledOptions{.steps = 1}, head);
  const torch::Tensor features = random_normal(random, {5, 3});
  const torch::Tensor answer = head->forward(features).argmax(1, true);
  EXPECT_TRUE(torch::equal(score->region(features, 0.0).prediction, answer));
  EXPECT_TRUE(torch::equal(score->region(features, 0.0).members,
                           torch::zeros({5, 4}, torch::kBool).scatter(1, answer, true)));
  EXPECT_EQ(score->region(features, kForever).members.sum().item<int64_t>(), 20);
  EXPECT_EQ(score->region(features, -1.0).members.sum().item<int64_t>(), 0);
  // A radius for each label: each is looked for in its own ball.
  const torch::Tensor wide = score->region(features, 2.0).members;
  torch::Tensor radii = torch::full({5, 4}, 2.0, torch::kDouble);
  radii.select(1, 1) = -1;
  torch::Tensor expected = wide.clone();
  expected.select(1, 1) = false;
  EXPECT_TRUE(torch::equal(score->region(features, radii).members, expected));
}

// Two labels with logits ±x/2: the gradient of the cross-entropy of label 1 is 1 / (1 + exp(−x)),
// so that one step of rate 1 from x = 0 goes 1/2 far.
TEST(FeatureSampled, OneStepByHand) {
  const auto head = network_of(linear_head(torch::tensor({{0.5f}, {-0.5f}}), torch::zeros({2})));
  FeatureSampledOptions options{.steps = 1, .step_rate = 1};
  const std::vector<double> one =
      make_score(options, head)->score(torch::zeros({1, 1}), torch::ones({1, 1}));
  EXPECT_NEAR(one[0], 0.5, 1e-6);
  options.steps = 2;
  const std::vector<double> two =
      make_score(options, head)->score(torch::zeros({1, 1}), torch::ones({1, 1}));
  EXPECT_NEAR(two[0], 0.5 + 1 / (1 + std::exp(0.5)), 1e-6);
}

TEST(FeatureSampled, NeedsStepsAndSamplesAndDoesNotObeyTheLaw) {
  const auto head = logits_as_features(3);
  EXPECT_THROW(make_score(FeatureSampledOptions{}, head), Error);
  EXPECT_THROW(make_score(FeatureSampledOptions{.steps = 1, .samples = 0}, head), Error);
  EXPECT_FALSE(ScoreOptions(FeatureSampledOptions{}).obeys_law());
  EXPECT_TRUE(ScoreOptions(FeatureMarginOptions{}).obeys_law());
}

}  // namespace
}  // namespace fcp
