#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/lac.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/pixel_heads.h"

namespace fcp {
namespace {

// A head that passes its input on: [N, 2, 1, 4].
std::shared_ptr<const Network> passing_head() {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2, 1, 4})};
  graph.outputs = {make_info("y", {kDynamic, 2, 1, 4})};
  graph.nodes = {make_node("Identity", {"x"}, {"y"})};
  return network_of(graph);
}

ScoreOptions pixel_lac(double share, bool double_log) {
  ScoreOptions options = LacOptions{};
  options.pixels = share;
  options.set(field::double_log, double_log);
  options.set(field::allow_empty, true);
  return options;
}

double double_log_of(double p) { return std::log(-std::log(p)); }

// Probabilities 0.9, 0.6, 0.2, 0.7 of class 0; the last pixel has no label.
TEST(PixelSets, ByHand) {
  std::vector<double> values;
  for (const double p : {0.9, 0.6, 0.2, 0.7}) values.push_back(double_log_of(p));
  for (const double p : {0.1, 0.4, 0.8, 0.3}) values.push_back(double_log_of(p));
  const torch::Tensor features = torch::tensor(values, torch::kFloat).reshape({1, 2, 1, 4});
  const torch::Tensor labels = torch::tensor({0.f, 0.f, 0.f, -1.f}).reshape({1, 4});
  const auto score = [&](double share) {
    return make_score(pixel_lac(share, true), passing_head())->score(features, labels)[0];
  };
  EXPECT_NEAR(score(0.3), 0.1, 1e-6);
  EXPECT_NEAR(score(0.5), 0.4, 1e-6);
  EXPECT_NEAR(score(1), 0.8, 1e-6);
  const Regions sets = make_score(pixel_lac(1, true), passing_head())->region(features, 0.45);
  EXPECT_TRUE(torch::equal(sets.prediction, torch::tensor({0L, 0L, 1L, 0L}).reshape({1, 4})));
  const torch::Tensor expected =
      torch::tensor({1, 1, 0, 1, 0, 0, 1, 0}).to(torch::kBool).reshape({1, 2, 4});
  EXPECT_TRUE(torch::equal(sets.members, expected)) << sets.members;
}

// The label of the largest probability of a pixel is in its set at every radius.
TEST(PixelSets, NoPixelIsWithoutALabel) {
  Random random(43);
  const torch::Tensor features = random_normal(random, {3, 2, 1, 4});
  ScoreOptions options = pixel_lac(0.5, false);
  const auto pure = make_score(options, passing_head());
  options.set(field::allow_empty, false);
  const auto score = make_score(options, passing_head());
  const torch::Tensor members = score->region(features, 0.1).members;
  const torch::Tensor plain = pure->region(features, 0.1).members;
  EXPECT_FALSE(plain.any(1).all().item<bool>());
  EXPECT_TRUE(torch::equal(members, plain.scatter(1, features.flatten(2).argmax(1, true), true)));
  const torch::Tensor answers = features.flatten(2).argmax(1).to(torch::kFloat);
  EXPECT_THAT(score->score(features, answers), testing::Each(0.0));
}

TEST(PixelSets, SoftmaxOfLogits) {
  const torch::Tensor features =
      torch::tensor({0.f, 2.f, -1.f, 0.f, 0.f, 0.f, 0.f, 0.f}).reshape({1, 2, 1, 4});
  const torch::Tensor labels = torch::tensor({0.f, 0.f, 0.f, 0.f}).reshape({1, 4});
  const double most = make_score(pixel_lac(1, false), passing_head())->score(features, labels)[0];
  EXPECT_NEAR(most, 1 - 1 / (1 + std::exp(1.0)), 1e-6);
}

// At least ⌈q L⌉ of the L labelled pixels have their label in their set ⟺ score ≤ r, exactly.
TEST(PixelSets, Law) {
  Random random(41);
  int pairs = 0;
  for (int i = 0; i < 40; ++i) {
    const int64_t classes = 2 + i % 3;
    const auto head = network_of(pixel_head(random, 2, classes));
    const torch::Tensor features = random_normal(random, {2, 2, kPixelSide, kPixelSide});
    torch::Tensor labels = torch::empty({2, 36}, torch::kFloat);
    for (int64_t k = 0; k < labels.numel(); ++k) {
      labels.data_ptr<float>()[k] =
          static_cast<float>(random.below(static_cast<uint64_t>(classes) + 1)) - 1;
    }
    const double share = 0.25 * (1 + i % 4);
    ScoreOptions options = pixel_lac(share, i % 2 == 0);
    options.set(field::allow_empty, i % 3 == 0);
    const auto score = make_score(options, head);
    EXPECT_EQ(score->classes(), classes);
    const std::vector<double> scores = score->score(features, labels);
    std::vector<double> radii = {-1, 0, 0.5, 1, kForever};
    for (const double one : scores) {
      radii.push_back(one);
      radii.push_back(std::nextafter(one, -1));
    }
    for (const double radius : radii) {
      const torch::Tensor members = score->region(features, radius).members.contiguous();
      for (int64_t row = 0; row < 2; ++row, ++pairs) {
        int in = 0, labelled = 0;
        for (int64_t k = 0; k < 36; ++k) {
          const auto label = static_cast<int64_t>(labels.data_ptr<float>()[row * 36 + k]);
          if (label < 0) continue;
          ++labelled;
          in += members.data_ptr<bool>()[(row * classes + label) * 36 + k] ? 1 : 0;
        }
        const bool enough = in >= std::ceil(share * labelled);
        EXPECT_EQ(enough, scores[static_cast<size_t>(row)] <= radius) << radius;
      }
    }
  }
  EXPECT_GT(pairs, 500);
}

TEST(PixelSets, ImagesWithoutLabels) {
  const auto score = make_score(pixel_lac(0.9, false), passing_head());
  torch::Tensor features = torch::zeros({1, 2, 1, 4});
  EXPECT_EQ(score->score(features, torch::full({1, 4}, -1.f))[0], -kForever);
  features[0][1][0][2] = std::nanf("");
  EXPECT_TRUE(std::isnan(score->score(features, torch::zeros({1, 4}))[0]));
}

TEST(PixelSets, Refuses) {
  const auto score = make_score(pixel_lac(0.9, false), passing_head());
  const torch::Tensor features = torch::zeros({1, 2, 1, 4});
  EXPECT_THAT(
      [&] {
        score->score(features, torch::full({1, 4}, 2.f));
      },
      testing::ThrowsMessage<Error>("found label 2, expected one of 0 to 1, or -1 for none"));
  EXPECT_THAT(
      [&] {
        score->score(features, torch::zeros({1, 3}));
      },
      testing::ThrowsMessage<Error>(
          "there are 3 labels per row, the network answers for 4 pixels"));
  EXPECT_THAT(
      [&] {
        make_score(pixel_lac(0.9, false), network_of(make_mlp({2, 3})));
      },
      testing::ThrowsMessage<Error>(
          "output 'y': sets of labels for pixels need an output [rows, classes, height, "
          "width] that says its classes"));
}

}  // namespace
}  // namespace fcp
