#include "fcp/search/surrogate_search.h"

#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::ThrowsMessage;

// y = W₂ tanh(W₁ v + b₁) + b₂ and the gradient of its weighted squared error, written out.
struct TanhHead {
  TanhHead() {
    torch::manual_seed(5);
    graph = make_mlp({3, 5, 2});
    graph.nodes[1].op = "Tanh";
    network = std::make_shared<const Network>(graph);
    v = torch::randn({6, 3});
    y = torch::randn({6, 2}) * 2;
  }

  torch::Tensor weight(const char* name) const {
    return graph.initializers.at(name).tensor().to(torch::kDouble);
  }

  torch::Tensor gradient(const torch::Tensor& u, const std::vector<double>& weights) const {
    const torch::Tensor hidden = torch::tanh(u.matmul(weight("w1").t()) + weight("b1"));
    const torch::Tensor error =
        hidden.matmul(weight("w2").t()) + weight("b2") - y.to(torch::kDouble);
    const torch::Tensor pulled =
        (2 * error * torch::tensor(weights, torch::kDouble)).matmul(weight("w2"));
    return (pulled * (1 - hidden.square())).matmul(weight("w1"));
  }

  Graph graph;
  std::shared_ptr<const Network> network;
  torch::Tensor v, y;
};

TEST(SurrogateSearch, DescendsAsByHand) {
  const TanhHead head;
  for (const std::vector<double>& weights : {std::vector<double>{1, 1}, {0.25, 3}}) {
    SearchOptions options;
    options.rate = 0.03;
    if (weights[0] != 1) options.weights = weights;
    const SurrogateSearch search(head.network, 0, options);
    torch::Tensor u = head.v.to(torch::kDouble);
    int seen = 0;
    const torch::Tensor last =
        search.walk(head.v, head.y, 40, [&](int step, const torch::Tensor& features) {
          EXPECT_EQ(step, ++seen);
          u = u - 0.03 * head.gradient(u, weights);
          EXPECT_TRUE(torch::allclose(features.to(torch::kDouble), u, 1e-4, 1e-5)) << step;
          return true;
        });
    EXPECT_EQ(seen, 40);
    EXPECT_TRUE(torch::allclose(last.to(torch::kDouble), u, 1e-4, 1e-5));
    EXPECT_TRUE((search.error(last, head.y) < search.error(head.v, head.y)).all().item<bool>());
  }
}

TEST(SurrogateSearch, AdamAsByHand) {
  const TanhHead head;
  SearchOptions options;
  options.rate = 0.05;
  options.adam = true;
  torch::Tensor u = head.v.to(torch::kDouble);
  torch::Tensor mean = torch::zeros_like(u), square = torch::zeros_like(u);
  for (int step = 1; step <= 30; ++step) {
    const torch::Tensor g = head.gradient(u, {1, 1});
    mean = 0.9 * mean + 0.1 * g;
    square = 0.999 * square + 0.001 * g * g;
    u = u - 0.05 * (mean / (1 - std::pow(0.9, step))) /
                (torch::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
  }
  const torch::Tensor last = SurrogateSearch(head.network, 0, options).walk(head.v, head.y, 30);
  EXPECT_TRUE(torch::allclose(last.to(torch::kDouble), u, 1e-3, 1e-4));
}

TEST(SurrogateSearch, ErrorIsTheWeightedSum) {
  const TanhHead head;
  const torch::Tensor squares = (head.network->forward(head.v) - head.y).square();
  EXPECT_TRUE(
      torch::allclose(SurrogateSearch(head.network, 0).error(head.v, head.y), squares.sum(1)));
  SearchOptions options;
  options.weights = {2, 0.5};
  EXPECT_TRUE(torch::allclose(SurrogateSearch(head.network, 0, options).error(head.v, head.y),
                              2 * squares.select(1, 0) + 0.5 * squares.select(1, 1)));
}

TEST(SurrogateSearch, ObserverEndsTheWalk) {
  const TanhHead head;
  const SurrogateSearch search(head.network, 0);
  int calls = 0;
  const torch::Tensor ended = search.walk(head.v, head.y, 100, [&](int step, const torch::Tensor&) {
    ++calls;
    return step < 7;
  });
  EXPECT_EQ(calls, 7);
  EXPECT_TRUE(torch::equal(ended, search.walk(head.v, head.y, 7)));
  EXPECT_TRUE(torch::equal(search.walk(head.v, head.y, 0), head.v));
}

// Each row descends by itself, also where the caller has switched gradients off.
TEST(SurrogateSearch, RowsAreAlone) {
  const TanhHead head;
  torch::NoGradGuard no_gradients;
  const SurrogateSearch search(head.network, 0);
  const torch::Tensor all = search.walk(head.v, head.y, 10);
  for (int64_t i = 0; i < 6; ++i) {
    const torch::Tensor one = search.walk(head.v.narrow(0, i, 1), head.y.narrow(0, i, 1), 10);
    EXPECT_TRUE(torch::allclose(one[0], all[i], 1e-5, 1e-6));
  }
  EXPECT_FALSE(all.requires_grad());
}

// The features after each of 12 steps by the shortcuts and through the whole head. One row in a
// hundred may differ: where a unit is 0 but for rounding, it is on by one road and off by another.
void expect_same_road(const Graph& graph, const torch::Tensor& v, const torch::Tensor& y,
                      double rate, torch::Device device = torch::kCPU) {
  const auto walk = [&](bool shortcuts, bool observed) {
    NetworkOptions where;
    where.device = shortcuts ? device : torch::Device(torch::kCPU);
    SearchOptions options;
    options.rate = rate;
    options.shortcuts = shortcuts;
    const SurrogateSearch search(std::make_shared<const Network>(graph, where), 0, options);
    std::vector<torch::Tensor> seen;
    const auto observe = [&](int, const torch::Tensor& u) {
      seen.push_back(u.cpu());
      return true;
    };
    seen.push_back(search.walk(v, y, 12, observed ? observe : SurrogateSearch::Observer()).cpu());
    return torch::stack(seen);
  };
  const torch::Tensor whole = walk(false, true);
  EXPECT_GT((whole[0] - v).abs().max().item<double>(), 1e-3);
  const auto share_off = [](const torch::Tensor& a, const torch::Tensor& b) {  // [steps, rows, …]
    return a.isclose(b, 1e-5, 1e-5)
        .logical_not()
        .flatten(2)
        .any(2)
        .any(0)
        .to(torch::kDouble)
        .mean();
  };
  EXPECT_LE(share_off(walk(true, true), whole).item<double>(), 0.01);
  EXPECT_LE(share_off(walk(true, false), whole.narrow(0, 12, 1)).item<double>(), 0.01);
}

TEST(SurrogateSearch, ShortcutsLeadToTheSameFeatures) {
  torch::manual_seed(7);
  expect_same_road(make_mlp({6, 5, 4, 2}), torch::randn({9, 6}), torch::randn({9, 2}), 0.02);
  expect_same_road(make_conv_head(8, 3, 3, 1), torch::randn({2, 8, 5, 4}),
                   torch::randn({2, 3 * 5 * 4}), 0.02);
}

TEST(SurrogateSearch, OneLaunchLeadsToTheSameFeatures) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  torch::manual_seed(8);
  for (const int64_t hidden : {5, 32, 40, 64, 65}) {
    expect_same_road(make_mlp({40, hidden, 1}), torch::randn({300, 40}) * 0.3,
                     torch::randn({300, 1}), 0.002, torch::kCUDA);
  }
}

TEST(SurrogateSearch, TellsWhatIsWrong) {
  const TanhHead head;
  SearchOptions options;
  options.weights = {1, 2, 3};
  EXPECT_THAT([&] { SurrogateSearch(head.network, 0, options).walk(head.v, head.y, 1); },
              ThrowsMessage<Error>("3 weights are given for 2 outputs"));
  EXPECT_THAT([&] { SurrogateSearch(head.network, 0).walk(head.v, head.y.narrow(1, 0, 1), 1); },
              ThrowsMessage<Error>("the target has 1 columns, the network answers 2"));
  Graph graph = make_mlp({2, 1});
  graph.nodes[0].outputs = {"z"};
  graph.initializers["zero"] = torch::zeros({1});
  graph.nodes.push_back(make_node("Greater", {"z", "zero"}, {"yes"}));
  graph.nodes.push_back(make_node("Cast", {"yes"}, {"y"}, {{"to", int64_t{1}}}));
  EXPECT_THAT([&] { SurrogateSearch(std::make_shared<const Network>(graph), 0); },
              ThrowsMessage<Error>("Greater node 'yes_node': has no gradient; cut later"));
}

// Of an image the weights are one a channel, and the error of a channel the mean over its pixels.
TEST(SurrogateSearch, WeighsChannelsOfImages) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2, 2, 2})};
  graph.outputs = {make_info("y", {kDynamic, 2, 2, 2})};
  graph.nodes = {make_node("Identity", {"x"}, {"y"})};
  SearchOptions options;
  options.rate = 0.5;
  options.weights = {1, 3};
  const SurrogateSearch search(std::make_shared<const Network>(graph), 0, options);
  const torch::Tensor v = torch::zeros({1, 2, 2, 2});
  const torch::Tensor y = torch::tensor({1.f, 2.f, 3.f, 4.f, 1.f, 1.f, 1.f, 1.f}).reshape({1, 8});
  EXPECT_FLOAT_EQ(search.error(v, y).item<float>(), 30.f / 4 + 3);
  // One step: u = η · 2 w y / P.
  const torch::Tensor u = search.walk(v, y, 1).flatten();
  EXPECT_FLOAT_EQ(u[3].item<float>(), 0.5f * 2 * 4 / 4);
  EXPECT_FLOAT_EQ(u[4].item<float>(), 0.5f * 2 * 3 / 4);
  const SurrogateSearch wrong(std::make_shared<const Network>(graph), 0,
                              {.weights = std::vector<double>(8, 1.0)});
  EXPECT_THAT([&] { wrong.error(v, y); },
              ThrowsMessage<Error>("8 weights are given for 2 channels"));
}

}  // namespace
}  // namespace fcp
