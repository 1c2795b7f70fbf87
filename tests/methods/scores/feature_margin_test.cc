// feature_margin: worked by hand in two dimensions, the closed form against bounds, and against
// samples of the ball.
#include "fcp/methods/scores/feature_margin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/feature_sampled.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/margin_head.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"

namespace fcp {
namespace {

constexpr std::array kMarginNorms = {Norm::kInf, Norm::kTwo, Norm::kOne};

torch::Tensor margins_by_hand(const Graph& graph, const torch::Tensor& feature,
                              const FeatureMarginOptions& options) {
  return all_label_scores(*make_score(options, network_of(graph)), feature.unsqueeze(0))[0];
}

void expect_close(const torch::Tensor& found, const std::vector<double>& expected) {
  EXPECT_TRUE(torch::allclose(found, torch::tensor(expected, torch::kDouble), 1e-6, 1e-7)) << found;
}

// Logits 3, 1, −4. W_0 − W_1 = (1, −1), W_0 − W_2 = (2, 1), W_1 − W_2 = (1, 2).
TEST(FeatureMargin, ByHandInEachNorm) {
  const Graph head =
      linear_head(torch::tensor({{1.f, 0.f}, {0.f, 1.f}, {-1.f, -1.f}}), torch::zeros({3}));
  const torch::Tensor v = torch::tensor({3.f, 1.f});
  expect_close(margins_by_hand(head, v, FeatureMarginOptions{.norm = Norm::kInf}),
               {0, 2.0 / 2, 7.0 / 3});
  expect_close(margins_by_hand(head, v, FeatureMarginOptions{.norm = Norm::kTwo}),
               {0, 2 / std::sqrt(2), 7 / std::sqrt(5)});
  expect_close(margins_by_hand(head, v, FeatureMarginOptions{.norm = Norm::kOne}),
               {0, 2.0 / 1, 7.0 / 2});
  expect_close(margins_by_hand(head, v, FeatureMarginOptions{.rank_weight = 0.5, .rank_free = 1}),
               {0, 1 + 0.5, 7.0 / 3 + 1});
}

// Logits 5, 1, 0; label 2 is ruled out first by label 1, not by the network's answer:
// 1 / ‖(0, 2)‖₁ = 1/2 > 5 / ‖(10, 1)‖₁ = 5/11.
TEST(FeatureMargin, AnyLabelMayRuleOut) {
  const Graph head = linear_head(torch::tensor({{10.f, 0.f}, {0.f, 1.f}, {0.f, -1.f}}),
                                 torch::tensor({-5.f, 1.f, 0.f}));
  const torch::Tensor v = torch::tensor({1.f, 0.f});
  expect_close(margins_by_hand(head, v, {}), {0, 4.0 / 11, 0.5});
  const auto score = make_score(FeatureMarginOptions{}, network_of(head));
  const auto members = [&](double radius) { return score->region(v.unsqueeze(0), radius).members; };
  EXPECT_TRUE(torch::equal(members(0.48), torch::tensor({{true, true, false}})));
  EXPECT_TRUE(torch::equal(members(0.5), torch::tensor({{true, true, true}})));
  EXPECT_TRUE(torch::equal(members(0.0), torch::tensor({{true, false, false}})));
}

// Labels 0 and 1 differ by their bias alone: no feature ever lets label 1 win, and equal logits
// rule nothing out.
TEST(FeatureMargin, EqualRowsOfTheHead) {
  const torch::Tensor weight = torch::tensor({{1.f, 2.f}, {1.f, 2.f}, {0.f, 1.f}});
  const torch::Tensor v = torch::tensor({1.f, 1.f});
  const torch::Tensor apart =
      margins_by_hand(linear_head(weight, torch::tensor({1.f, 0.f, 0.f})), v, {});
  EXPECT_GT(apart[1].item<double>(), 1e37);
  EXPECT_NEAR(apart[2].item<double>(), 1.5, 1e-6);
  const torch::Tensor equal = margins_by_hand(linear_head(weight, torch::zeros({3})), v, {});
  EXPECT_EQ(equal[0].item<double>(), 0);
  EXPECT_EQ(equal[1].item<double>(), 0);
}

// max over j written out, for more classes than a vector has lanes.
TEST(FeatureMargin, TheKernelIsTheFormula) {
  Random random(1);
  for (const int64_t classes : {2, 15, 16, 17, 70}) {
    for (const Norm norm : kMarginNorms) {
      const torch::Tensor weight = random_normal(random, {classes, 6});
      const auto head = network_of(linear_head(weight, random_normal(random, {classes})));
      const torch::Tensor features = random_normal(random, {9, 6});
      const torch::Tensor z = head->forward(features).to(torch::kDouble);
      const torch::Tensor found =
          all_label_scores(*make_score(FeatureMarginOptions{.norm = norm}, head), features);
      torch::Tensor expected = torch::zeros_like(z);
      for (int64_t k = 0; k < classes; ++k) {
        for (int64_t j = 0; j < classes; ++j) {
          if (j == k) continue;
          const torch::Tensor difference = (weight[j] - weight[k]).to(torch::kDouble);
          const torch::Tensor dual = dual_norm(difference.unsqueeze(0), norm);
          expected.select(1, k).copy_(
              torch::maximum(expected.select(1, k), (z.select(1, j) - z.select(1, k)) / dual));
        }
      }
      EXPECT_TRUE(torch::allclose(found, expected, 1e-5, 1e-6)) << classes << norm_name(norm);
      const auto score = make_score(FeatureMarginOptions{.norm = norm}, head);
      EXPECT_TRUE(
          torch::equal(dynamic_cast<const LabelScore&>(*score).label_scores(features), found));
    }
  }
}

// MatMul and Add, a convolution and a mean are linear layers as well; a ReLU between is not.
TEST(FeatureMargin, FindsTheAffineEndOfAHead) {
  Random random(2);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3, 4, 4})};
  graph.initializers["w"] = random_normal(random, {3, 5});
  graph.initializers["b"] = random_normal(random, {5});
  graph.nodes = {
      make_node("GlobalAveragePool", {"x"}, {"mean"}), make_node("Flatten", {"mean"}, {"flat"}),
      make_node("MatMul", {"flat", "w"}, {"product"}), make_node("Add", {"product", "b"}, {"y"})};
  graph.outputs = {make_info("y", {kDynamic, 5})};
  const torch::Tensor features = random_normal(random, {2, 3, 4, 4});
  const AffineTail whole = affine_tail(logit_head(network_of(graph), ""), features);
  EXPECT_TRUE(whole.whole());
  EXPECT_TRUE(torch::allclose(whole.bias, graph.initializers["b"]));
  const torch::Tensor spread =
      graph.initializers["w"].tensor().t().unsqueeze(2).expand({5, 3, 16}) / 16;
  EXPECT_TRUE(torch::allclose(whole.weight, spread.reshape({5, 48})));

  graph.nodes.insert(graph.nodes.begin(), make_node("Relu", {"x"}, {"r"}));
  graph.nodes[1].inputs[0] = "r";
  const AffineTail part = affine_tail(logit_head(network_of(graph), ""), features);
  EXPECT_FALSE(part.whole());
  EXPECT_EQ(part.front.nodes.size(), 1u);
  EXPECT_TRUE(torch::allclose(part.weight, whole.weight));
}

TEST(FeatureMargin, ClosedFormIsTheOneOfBounds) {
  Random random(3);
  for (int i = 0; i < 12; ++i) {
    const int64_t classes = 2 + i % 5;
    const auto head = network_of(
        linear_head(random_normal(random, {classes, 4}), random_normal(random, {classes})));
    const torch::Tensor features = random_normal(random, {10, 4});
    const FeatureMarginOptions options{.norm = kMarginNorms[static_cast<size_t>(i % 3)],
                                       .rank_weight = i % 2 * 0.1,
                                       .rank_free = 1};
    const LogitHead logits = logit_head(head, "");
    const auto by_bounds = make_margin_by_bounds(options, logits, affine_tail(logits, features));
    const torch::Tensor expected = all_label_scores(*make_score(options, head), features);
    const torch::Tensor found = all_label_scores(*by_bounds, features);
    EXPECT_TRUE(torch::allclose(found, expected, 1e-4, 1e-5)) << found << expected;
    EXPECT_TRUE(torch::equal(by_bounds->label_scores(features), found));
  }
}

// No sample of the ball predicts a label that the region leaves out; linear and deep heads.
TEST(FeatureMargin, HoldsEveryLabelPredictedInTheBall) {
  Random random(4);
  int strict = 0;
  int64_t left_out = 0;
  for (int i = 0; i < 30; ++i) {
    const auto head = network_of(wild_head(random, 4));
    const int64_t width = head->inputs()[0].shape[1];
    const torch::Tensor features = random_normal(random, {10, width});
    const Norm norm = kMarginNorms[static_cast<size_t>(i % 3)];
    const auto margin = make_score(FeatureMarginOptions{.norm = norm}, head);
    const auto sampled = make_score(FeatureSampledOptions{.norm = norm, .steps = 1}, head);
    const double radius = std::pow(10, 2 * random.uniform() - 1);
    const torch::Tensor wide = margin->region(features, radius).members;
    const torch::Tensor narrow = sampled->region(features, radius).members;
    EXPECT_FALSE(narrow.logical_and(~wide).any().item<bool>()) << i;
    strict += wide.logical_and(~narrow).any().item<bool>();
    left_out += (~wide).sum().item<int64_t>();
  }
  EXPECT_GT(strict, 3);
  EXPECT_GT(left_out, 100);
}

// A file may fix its batch, inside the head as well.
TEST(FeatureMargin, HeadsOfAFixedBatch) {
  Random random(5);
  Graph graph = linear_head(random_normal(random, {3, 4}), random_normal(random, {3}));
  const auto free = network_of(graph);
  graph.inputs[0].shape[0] = graph.outputs[0].shape[0] = 2;
  graph.initializers["shape"] = torch::tensor({2, 4}, torch::kLong);
  graph.nodes[0].inputs[0] = "same";
  graph.nodes.insert(graph.nodes.begin(), make_node("Reshape", {"x", "shape"}, {"same"}));
  const auto fixed = network_of(graph);
  const torch::Tensor features = random_normal(random, {5, 4});
  const ScoreOptions options = FeatureMarginOptions{};
  EXPECT_TRUE(torch::allclose(all_label_scores(*make_score(options, fixed), features),
                              all_label_scores(*make_score(options, free), features)));
}

TEST(FeatureMargin, TooManyPairsAreRefused) {
  const auto head = network_of(make_mlp({4, 8, 300}));
  const ScoreOptions options = FeatureMarginOptions{.bound = {.memory = size_t{1} << 20}};
  const auto score = make_score(options, head);
  try {
    score->region(torch::zeros({1, 4}), 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("300 labels"));
    EXPECT_THAT(error.what(), testing::HasSubstr("(cut -1)"));
  }
}

}  // namespace
}  // namespace fcp
