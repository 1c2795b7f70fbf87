// The fast path for Linear–ReLU–Linear heads against Algorithm 2 written out in double precision,
// and against the general search.

#include "fcp/search/relu_walk.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/search/surrogate_search.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

struct ReluCase {
  ReluCase(int64_t features, int64_t hidden, int64_t rows, double spread = 1) {
    torch::manual_seed(features * 100 + hidden);
    graph = make_mlp({features, hidden, 1});
    for (const char* weight : {"w1", "w2"}) {  // PyTorch's own initialisation
      const torch::Tensor w = graph.initializers[weight];
      graph.initializers[weight] =
          (torch::rand_like(w) * 2 - 1) / std::sqrt(static_cast<double>(w.size(1)));
    }
    network = std::make_shared<const Network>(graph);
    v = torch::relu(torch::randn({rows, features}));
    y = network->forward(v) + spread * torch::randn({rows, 1});
  }

  // u after each step, in double precision.
  std::vector<torch::Tensor> by_hand(int steps, double rate) const {
    const auto weight = [&](const char* name) {
      return graph.initializers.at(name).tensor().to(torch::kDouble);
    };
    std::vector<torch::Tensor> path;
    torch::Tensor u = v.to(torch::kDouble);
    for (int step = 0; step < steps; ++step) {
      const torch::Tensor p = u.matmul(weight("w1").t()) + weight("b1");
      const torch::Tensor error =
          torch::relu(p).matmul(weight("w2").t()) + weight("b2") - y.to(torch::kDouble);
      u = u - rate * (2 * error * weight("w2") * (p > 0)).matmul(weight("w1"));
      path.push_back(u);
    }
    return path;
  }

  Graph graph;
  std::shared_ptr<const Network> network;
  torch::Tensor v, y;
};

// The share of rows that are off by more than `tolerance` of how far they went. A unit that is
// about to flip may do so a step earlier or later than in another arithmetic, and the row then
// differs by a part of one step; such rows are few, and the limit allows for them.
double share_off(const torch::Tensor& found, const torch::Tensor& expected, const torch::Tensor& v,
                 double tolerance) {
  const torch::Tensor e = expected.to(torch::kDouble), from = v.to(torch::kDouble);
  const torch::Tensor went = (e - from).abs().amax(1) + from.abs().amax(1);
  const torch::Tensor off = (found.to(torch::kDouble) - e).abs().amax(1) / went;
  return (off > tolerance).to(torch::kDouble).mean().item<double>();
}

TEST(ReluSearch, FeaturesAreThoseOfAlgorithmTwo) {
  for (const auto& [features, hidden] : {std::pair{64, 64}, {7, 19}, {1, 3}, {33, 130}}) {
    const ReluCase test(features, hidden, 400);
    for (const double rate : {0.01, 0.001}) {
      const SurrogateSearch search(test.network, 0, {.rate = rate});
      const std::vector<torch::Tensor> path = test.by_hand(120, rate);
      for (const int steps : {1, 2, 17, 120}) {
        const torch::Tensor found = search.walk(test.v, test.y, steps);
        const torch::Tensor& expected = path[static_cast<size_t>(steps - 1)];
        EXPECT_LE(share_off(found, expected, test.v, 1e-5), 0.01) << features << " " << steps;
        EXPECT_EQ(share_off(found, expected, test.v, 1e-2), 0) << features << " " << steps;
      }
    }
  }
}

// Steps so long that the residual changes its sign at each, with and without convergence.
TEST(ReluSearch, LongStepsToo) {
  const ReluCase test(16, 24, 300, 0.1);
  for (const double rate : {2.0, 6.0}) {
    const SurrogateSearch search(test.network, 0, {.rate = rate});
    const std::vector<torch::Tensor> path = test.by_hand(12, rate);
    for (const int steps : {1, 3, 12}) {
      const torch::Tensor found = search.walk(test.v, test.y, steps);
      EXPECT_LE(share_off(found, path[static_cast<size_t>(steps - 1)], test.v, 1e-4), 0.02)
          << rate << " " << steps;
    }
  }
}

// An observer takes the general path: both walk the same way, and the distances of both agree.
TEST(ReluSearch, AgreesWithTheGeneralSearch) {
  const ReluCase test(64, 64, 500);
  const SurrogateSearch search(test.network, 0, {.rate = 0.01, .weights = {0.7}});
  const torch::Tensor general =
      search.walk(test.v, test.y, 60, [](int, const torch::Tensor&) { return true; });
  EXPECT_LE(share_off(search.walk(test.v, test.y, 60), general, test.v, 1e-5), 0.01);
  const torch::Tensor way = (general - test.v).abs();
  for (const auto& [order, expected] : {std::pair{DistanceOrder::kLargest, way.amax(1)},
                                        {DistanceOrder::kEuclidean, way.square().sum(1).sqrt()},
                                        {DistanceOrder::kSum, way.sum(1)}}) {
    const torch::Tensor found = search.distances(test.v, test.y, 60, order);
    const torch::Tensor off = (found - expected).abs() > 1e-5 * (1 + expected);
    EXPECT_LE(off.to(torch::kDouble).mean().item<double>(), 0.01);
  }
}

TEST(ReluSearch, DistancesAfterEveryStep) {
  const ReluCase test(20, 40, 60);
  const SurrogateSearch search(test.network, 0, {.rate = 0.02});
  for (const DistanceOrder order :
       {DistanceOrder::kLargest, DistanceOrder::kEuclidean, DistanceOrder::kSum}) {
    int seen = 0;
    const torch::Tensor last =
        search.distances(test.v, test.y, 100, order, [&](int step, const torch::Tensor& distances) {
          EXPECT_EQ(step, ++seen);
          EXPECT_TRUE(
              torch::allclose(distances, search.distances(test.v, test.y, step, order), 1e-4, 1e-5))
              << step;
          return step < 37;
        });
    EXPECT_EQ(seen, 37);
    EXPECT_TRUE(torch::allclose(last, search.distances(test.v, test.y, 37, order), 1e-4, 1e-5));
  }
  EXPECT_TRUE(
      torch::equal(search.distances(test.v, test.y, 0, DistanceOrder::kSum), torch::zeros({60})));
  EXPECT_TRUE(torch::equal(search.walk(test.v, test.y, 0), test.v));
}

// Steps that overshoot go to and fro, so that the first and the last do not enclose the others.
TEST(ReluSearch, DistancesAfterLongSteps) {
  const ReluCase test(16, 6, 2000, 0.02);
  for (const double rate : {2.0, 20.0, 60.0}) {
    const SurrogateSearch search(test.network, 0, {.rate = rate});
    search.distances(
        test.v, test.y, 12, DistanceOrder::kLargest, [&](int step, const torch::Tensor& distances) {
          const torch::Tensor alone =
              search.distances(test.v, test.y, step, DistanceOrder::kLargest);
          EXPECT_TRUE(torch::allclose(distances, alone, 1e-4, 1e-6)) << rate << " " << step;
          return true;
        });
  }
}

// The same bits whatever the number of threads and whatever rows stand beside a row.
TEST(ReluSearch, RowsAreAlone) {
  const ReluCase test(64, 64, 3000);
  const SurrogateSearch search(test.network, 0);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const torch::Tensor one = search.walk(test.v, test.y, 30);
  at::set_num_threads(3);
  EXPECT_TRUE(torch::equal(search.walk(test.v, test.y, 30), one));
  at::set_num_threads(before);
  const torch::Tensor part = search.walk(test.v.narrow(0, 1001, 7), test.y.narrow(0, 1001, 7), 30);
  EXPECT_TRUE(torch::equal(part, one.narrow(0, 1001, 7)));
}

TEST(ReluSearch, NotANumberStaysOne) {
  ReluCase test(8, 12, 4);
  test.v[1][3] = std::numeric_limits<float>::quiet_NaN();
  test.y[2][0] = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor far =
      SurrogateSearch(test.network, 0).distances(test.v, test.y, 5, DistanceOrder::kLargest);
  const torch::Tensor expected = torch::tensor({false, true, true, false});
  EXPECT_TRUE(torch::equal(far.isnan(), expected));
}

// No unit is active, so that nothing pulls: the feature stays.
TEST(ReluSearch, DeadRowsStay) {
  ReluCase test(8, 12, 4);
  test.graph.initializers["b1"] = torch::full({12}, -100.0f);
  const auto dead = std::make_shared<const Network>(test.graph);
  EXPECT_TRUE(torch::equal(SurrogateSearch(dead, 0).walk(test.v, test.y, 50), test.v));
}

TEST(ReluSearch, RuleOfChoice) {
  const ReluCase one(8, 12, 4);
  EXPECT_NE(make_relu_search(*one.network, 0, {}), nullptr);
  EXPECT_EQ(make_relu_search(*one.network, 0, {.adam = true}), nullptr);
  EXPECT_EQ(make_relu_search(*one.network, 0, {.loss = SearchLoss::kCrossEntropy}), nullptr);
  EXPECT_EQ(make_relu_search(Network(make_mlp({8, 12, 2})), 0, {}), nullptr);
  EXPECT_EQ(make_relu_search(Network(make_mlp({8, 12, 12, 1})), 0, {}), nullptr);
}

}  // namespace
}  // namespace fcp
