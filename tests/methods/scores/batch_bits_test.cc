// Equal rows have equal scores and equal regions, to the last bit, alone and in batches of any
// size: what ties on discrete data need.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/random.h"
#include "fcp/methods/method.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"

namespace fcp {
namespace {

Graph tanh_network(const std::vector<int64_t>& widths, const std::string& activation = "Tanh") {
  Graph graph = make_mlp(widths);
  for (Node& node : graph.nodes) {
    if (node.op == "Relu") node.op = activation;
  }
  return graph;
}

void expect_bits_of_batches(const Score& score, const torch::Tensor& features,
                            const torch::Tensor& truth, const std::string& what,
                            const std::vector<int64_t>& sizes = {2, 3, 7, 16, 40}) {
  const int64_t rows = features.size(0), sides = score.sides();
  const auto in_batches = [&](int64_t size, Regions& regions) {
    std::vector<double> scores;
    std::vector<torch::Tensor> ends;
    for (int64_t first = 0; first < rows; first += size) {
      const int64_t count = std::min(size, rows - first);
      const torch::Tensor v = features.narrow(0, first, count).contiguous();
      const std::vector<double> part = score.score(v, truth.narrow(0, first, count));
      scores.insert(scores.end(), part.begin(), part.end());
      const Regions at = score.region(v, torch::full({count, sides}, 0.3, torch::kDouble));
      ends.push_back(at.members.defined() ? at.members.to(torch::kDouble)
                                          : torch::cat({at.prediction, at.lower, at.upper}, 1));
    }
    regions.members = torch::cat(ends);
    return scores;
  };
  Regions expected;
  const std::vector<double> alone = in_batches(1, expected);
  for (const int64_t size : sizes) {
    Regions regions;
    const std::vector<double> scores = in_batches(size, regions);
    for (size_t i = 0; i < alone.size(); ++i) {
      ASSERT_EQ(scores[i], alone[i]) << what << ": row " << i << " in batches of " << size;
    }
    EXPECT_TRUE(torch::equal(regions.members, expected.members)) << what << ": regions of " << size;
  }
}

TEST(BatchBits, IntervalScores) {
  torch::manual_seed(1);
  Random random(1);
  for (const std::string activation : {"Tanh", "Sigmoid", "Relu"}) {
    const auto head = network_of(tanh_network({5, 64, 2}, activation));
    const torch::Tensor v = random_normal(random, {19, 5});
    const torch::Tensor y = random_normal(random, {19, 2}).to(torch::kDouble);
    for (const std::string name : {"residual", "nested", "linearized"}) {
      for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
        ScoreOptions options(name);
        if (Norm* own = options.find(field::norm)) *own = norm;
        expect_bits_of_batches(*make_score(options, head), v, y, activation + " " + name);
      }
    }
  }
}

TEST(BatchBits, NestedByLinearBounds) {
  torch::manual_seed(2);
  Random random(2);
  const auto head = network_of(tanh_network({3, 5, 1}));
  const torch::Tensor v = random_normal(random, {3, 3});
  const torch::Tensor y = random_normal(random, {3, 1}).to(torch::kDouble);
  for (const BoundMethod method : {BoundMethod::kCrownIbp, BoundMethod::kCrown}) {
    ScoreOptions options;
    options.find(field::bound)->method = method;
    expect_bits_of_batches(*make_score(options, head), v, y, bound_name(method), {3});
  }
}

TEST(BatchBits, QuantileScores) {
  torch::manual_seed(3);
  Random random(3);
  Graph graph = tanh_network({4, 33, 2});
  graph.outputs = {make_info("low", {kDynamic, 1}), make_info("high", {kDynamic, 1})};
  graph.initializers["sizes"] = torch::ones({2}, torch::kLong);
  graph.opset = 13;
  graph.nodes.push_back(
      make_node("Split", {"y", "sizes"}, {"low", "high"}, {{"axis", int64_t{1}}}));
  const auto head = network_of(graph);
  const torch::Tensor v = random_normal(random, {19, 4});
  const torch::Tensor y = random_normal(random, {19, 1}).to(torch::kDouble);
  for (const std::string name : {"cqr", "feature_cqr"}) {
    ScoreOptions options(name);
    expect_bits_of_batches(*make_score(options, head), v, y, name);
  }
}

TEST(BatchBits, LabelScores) {
  torch::manual_seed(4);
  Random random(4);
  for (const std::vector<int64_t>& widths :
       {std::vector<int64_t>{2, 64, 3}, std::vector<int64_t>{5, 21, 17}}) {
    const auto head = network_of(tanh_network(widths));
    const torch::Tensor v = random_normal(random, {40, widths[0]});
    const torch::Tensor y = torch::arange(40, torch::kLong).remainder(3).unsqueeze(1);
    for (const std::string name : {"lac", "aps", "raps", "saps", "feature_margin"}) {
      ScoreOptions options(name);
      if (double* weight = options.find(field::rank_weight)) *weight = 0.1;
      expect_bits_of_batches(*make_score(options, head), v, y, name);
    }
  }
}

// Four different inputs, so that nearly all scores are ties. With radii from batches and new rows
// one by one, a row is in exactly where it is in a batch, and coverage is that of the rank: at
// least 0.9, in 60 calibrations of 200 rows with 200 new ones each. The mean of 60 Beta(181, 20)
// coverages with 12,000 draws has a deviation below 0.004; 0.88 is five of them away. A set is a
// function of the input and the radius, so that each input is asked alone once per radius.
TEST(BatchBits, DiscreteInputsAreCoveredOneByOneAsInBatches) {
  torch::manual_seed(5);
  Random random(5);
  const auto head = network_of(tanh_network({2, 64, 3}));
  const torch::Tensor inputs = random_normal(random, {4, 2});
  for (const std::string name : {"lac", "feature_margin"}) {
    ScoreOptions options(name);
    const std::unique_ptr<Score> score = make_score(options, head);
    double covered = 0;
    for (int calibration = 0; calibration < 60; ++calibration) {
      torch::Tensor which = torch::empty({400}, torch::kLong);
      for (int64_t i = 0; i < 400; ++i) {
        which.data_ptr<int64_t>()[i] = static_cast<int64_t>(random.below(4));
      }
      const torch::Tensor x = inputs.index_select(0, which);
      const torch::Tensor y = drawn_labels(random, head->run({x})[0] * 0.3);
      std::vector<double> scores = score->score(x.narrow(0, 0, 200), y.narrow(0, 0, 200));
      std::sort(scores.begin(), scores.end());
      const double radius = scores[180];  // ⌈0.9 · 201⌉ = 181
      std::vector<Regions> alone;
      for (int64_t i = 0; i < 4; ++i) {
        alone.push_back(score->region(inputs.narrow(0, i, 1).contiguous(), radius));
      }
      for (int64_t i = 200; i < 400; ++i) {
        const auto input = static_cast<size_t>(which[i].item<int64_t>());
        covered += inside(alone[input], y.narrow(0, i, 1))[0] ? 1 : 0;
      }
    }
    EXPECT_GT(covered / 12000, 0.88) << name;
  }
}

}  // namespace
}  // namespace fcp
