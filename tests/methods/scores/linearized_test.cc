#include "fcp/methods/scores/linearized.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::ThrowsMessage;

double dual_of(const std::vector<double>& gradient, Norm norm) {
  double sum = 0, squares = 0, most = 0;
  for (const double g : gradient) {
    sum += std::abs(g);
    squares += g * g;
    most = std::max(most, std::abs(g));
  }
  return norm == Norm::kInf ? sum : norm == Norm::kTwo ? std::sqrt(squares) : most;
}

// Central differences of a tanh head computed by hand in double precision.
TEST(Linearized, MatchesNumericGradients) {
  Random random(1);
  Graph graph = make_mlp({4, 6, 2});
  for (auto& [name, tensor] : graph.initializers) {
    tensor = random_normal(random, tensor.shape());
  }
  graph.nodes[1].op = "Tanh";
  const auto head = network_of(graph);
  const auto weight = [&](const char* name) {
    return graph.initializers[name].tensor().to(torch::kDouble);
  };
  const auto by_hand = [&](const torch::Tensor& v) {
    const torch::Tensor hidden = torch::tanh(v.matmul(weight("w1").t()) + weight("b1"));
    return hidden.matmul(weight("w2").t()) + weight("b2");
  };
  HeadRows rows;
  rows.features = random_normal(random, {10, 4});
  const torch::Tensor v = rows.features.to(torch::kDouble);
  rows.truth = by_hand(v) + random_normal(random, {10, 2}).to(torch::kDouble);
  for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
    for (const double floor : {0.0, 0.5}) {
      ScoreOptions options = LinearizedOptions{};
      options.set(field::norm, norm);
      options.set(field::floor, floor);
      options.set(field::slope, 3);
      const std::unique_ptr<Score> score = make_score(options, head);
      const std::vector<double> scores = score->score(rows.features, rows.truth);
      const Regions regions = score->region(rows.features, 2);
      for (int64_t i = 0; i < 10; ++i) {
        double expected = 0;
        for (int64_t k = 0; k < 2; ++k) {
          std::vector<double> gradient;
          for (int64_t d = 0; d < 4; ++d) {
            torch::Tensor step = torch::zeros({4}, torch::kDouble);
            step[d] = 1e-5;
            gradient.push_back((by_hand(v[i] + step)[k] - by_hand(v[i] - step)[k]).item<double>() /
                               2e-5);
          }
          const double slope = dual_of(gradient, norm) + floor * 1.5;
          const double distance = (rows.truth[i] - by_hand(v[i]))[k].abs().item<double>();
          expected = std::max(expected, distance / slope);
          EXPECT_NEAR((regions.upper - regions.lower)[i][k].item<double>(), 4 * slope,
                      1e-5 * slope);
        }
        EXPECT_NEAR(scores[static_cast<size_t>(i)], expected, 1e-4 * (1 + expected));
      }
    }
  }
}

// The fast form of Linear–ReLU–Linear heads, and the general one: the same head with two changes of
// sign behind it, which the fast form does not know.
TEST(Linearized, FastFormEqualsTheGeneralOne) {
  Random random(4);
  for (const auto& [inputs, hidden, outputs] :
       {std::array{5, 7, 1}, std::array{64, 64, 1}, std::array{33, 20, 3}}) {
    Graph graph = make_mlp({inputs, hidden, outputs});
    for (auto& [name, tensor] : graph.initializers) {
      tensor = random_normal(random, tensor.shape());
    }
    Graph general = graph;
    const std::string last = general.outputs[0].name;
    for (Node& node : general.nodes) {
      for (std::string& output : node.outputs) output = output == last ? "before" : output;
    }
    general.nodes.push_back(make_node("Neg", {"before"}, {"negative"}));
    general.nodes.push_back(make_node("Neg", {"negative"}, {last}));
    const torch::Tensor v = random_normal(random, {100, inputs});
    const torch::Tensor y = random_normal(random, {100, outputs}) * 10;
    const torch::Tensor radius = random_normal(random, {100, 1}).abs().to(torch::kDouble);
    for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
      ScoreOptions options = LinearizedOptions{.norm = norm, .floor = 0.25};
      options.set(field::slope, 2);
      const auto fast = make_score(options, network_of(graph));
      const auto slow = make_score(options, network_of(general));
      const torch::Tensor found = torch::tensor(fast->score(v, y), torch::kDouble);
      const torch::Tensor expected = torch::tensor(slow->score(v, y), torch::kDouble);
      EXPECT_TRUE(torch::allclose(found, expected, 1e-5, 1e-6));
      const Regions a = fast->region(v, radius), b = slow->region(v, radius);
      EXPECT_TRUE(torch::allclose(a.prediction, b.prediction, 1e-5, 1e-4));
      EXPECT_TRUE(torch::allclose(a.upper - a.lower, b.upper - b.lower, 1e-5, 1e-6));
    }
  }
}

TEST(Linearized, ZeroGradientNeverDividesByZero) {
  // y = relu(v) is flat for v < 0.
  Graph graph = linear_head(torch::ones({1, 1}), torch::zeros({1}));
  graph.nodes[0].outputs = {"z"};
  graph.nodes.push_back(make_node("Relu", {"z"}, {"y"}));
  const auto head = network_of(graph);
  ScoreOptions options = LinearizedOptions{};
  HeadRows rows;
  rows.features = torch::tensor({{-1.0f}, {-2.0f}, {3.0f}});
  rows.truth = torch::tensor({{0.0}, {0.5}, {4.0}}, torch::kDouble);
  const std::unique_ptr<Score> score = make_score(options, head);
  const std::vector<double> scores = score->score(rows.features, rows.truth);
  EXPECT_EQ(scores, (std::vector<double>{0, kForever, 1}));
  expect_law(*score, rows, scores, {-kForever, -1, 0, 0.5, 1, 1e300, kForever});
  options.set(field::floor, 0.5);
  options.set(field::slope, 2);
  const std::vector<double> widened = make_score(options, head)->score(rows.features, rows.truth);
  EXPECT_EQ(widened, (std::vector<double>{0, 1, 2.0 / 3}));
}

TEST(Linearized, RefusesAHeadWithoutGradients) {
  Graph graph = make_mlp({2, 1});
  graph.nodes[0].outputs = {"z"};
  graph.initializers["zero"] = torch::zeros({1});
  graph.nodes.push_back(make_node("Greater", {"z", "zero"}, {"yes"}));
  graph.nodes.push_back(make_node("Cast", {"yes"}, {"y"}, {{"to", int64_t{1}}}));
  ScoreOptions options = LinearizedOptions{};
  EXPECT_THAT([&] { make_score(options, network_of(graph)); },
              ThrowsMessage<Error>("Greater node 'yes_node': has no gradient; cut later"));
}

}  // namespace
}  // namespace fcp
