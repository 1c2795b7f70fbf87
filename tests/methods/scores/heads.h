// Random heads, features and truths for the tests of scores, and the law they are held against.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/random.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {

constexpr double kForever = std::numeric_limits<double>::infinity();

inline std::shared_ptr<const Network> network_of(Graph graph) {
  return std::make_shared<const Network>(std::move(graph));
}

inline torch::Tensor random_normal(Random& random, const std::vector<int64_t>& shape) {
  torch::Tensor values = torch::empty(shape, torch::kFloat);
  float* data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] = static_cast<float>(random.normal());
  return values;
}

// y = W v + b, W [K, D].
inline Graph linear_head(const torch::Tensor& weight, const torch::Tensor& bias) {
  Graph graph = make_mlp({weight.size(1), weight.size(0)});
  graph.initializers["w1"] = weight;
  graph.initializers["b1"] = bias;
  return graph;
}

// A perceptron of 1 to 4 layers, 2 to 8 wide, ReLU or tanh, with layers of wildly different scale.
inline Graph wild_head(Random& random, int64_t outputs) {
  std::vector<int64_t> widths;
  const uint64_t layers = 1 + random.below(4);
  for (uint64_t i = 0; i < layers; ++i) widths.push_back(2 + static_cast<int64_t>(random.below(7)));
  widths.push_back(outputs);
  Graph graph = make_mlp(widths);
  for (auto& [name, tensor] : graph.initializers) {
    const double scale = std::pow(10, 3 * random.uniform() - 1.5);
    tensor = random_normal(random, tensor.shape()) * scale;
  }
  const bool smooth = random.below(2) == 0;
  for (Node& node : graph.nodes) {
    if (node.op == "Relu" && smooth) node.op = "Tanh";
  }
  return graph;
}

struct HeadRows {
  torch::Tensor features;  // [N, D]
  torch::Tensor truth;     // [N, K], doubles; of float32 numbers, as all data are
};

// Features at any scale, truths from a thousandth of the prediction to a thousand times it away;
// every tenth row has the prediction itself as its truth.
inline HeadRows wild_rows(Random& random, const Network& head, int64_t rows, size_t output = 0) {
  HeadRows made;
  made.features = random_normal(random, {rows, head.inputs()[0].shape[1]}) *
                  std::pow(10, 2 * random.uniform() - 1);
  torch::NoGradGuard no_gradients;
  const torch::Tensor prediction = head.run({made.features})[output].to(torch::kDouble);
  made.truth = prediction.clone();
  for (int64_t i = 0; i < rows; ++i) {
    if (i % 10 == 9) continue;
    const double distance = std::pow(10, 6 * random.uniform() - 3);
    const torch::Tensor direction = random_normal(random, {prediction.size(1)}).to(torch::kDouble);
    made.truth[i] += direction * (prediction[i].abs() + 0.1) * distance;
  }
  made.truth = made.truth.to(torch::kFloat).to(torch::kDouble);
  return made;
}

inline float next_below(double radius) {
  return std::nextafter(static_cast<float>(radius), -std::numeric_limits<float>::infinity());
}

inline std::vector<bool> inside(const Regions& regions, const torch::Tensor& truth) {
  const torch::Tensor flags =
      regions.members.defined()
          ? regions.members.gather(1, truth.to(torch::kLong)).squeeze(1).contiguous()
          : in_regions(regions, truth).contiguous();
  const bool* data = flags.data_ptr<bool>();
  return std::vector<bool>(data, data + flags.numel());
}

// y ∈ region(v, r) ⟺ score(v, y) ≤ r for all rows and radii, and regions that grow with the radius.
// Returns the number of pairs that were held against the law.
inline int expect_law(const Score& score, const HeadRows& rows, const std::vector<double>& scores,
                      std::vector<double> radii) {
  std::sort(radii.begin(), radii.end());
  Regions before;
  int pairs = 0;
  for (const double radius : radii) {
    const Regions regions = score.region(rows.features, radius);
    const std::vector<bool> in = inside(regions, rows.truth);
    for (size_t i = 0; i < scores.size(); ++i) {
      ++pairs;
      EXPECT_EQ(in[i], scores[i] <= radius)
          << "row " << i << ", score " << scores[i] << ", radius " << radius << ", truth "
          << rows.truth[static_cast<int64_t>(i)];
    }
    if (before.lower.defined()) {
      EXPECT_TRUE((regions.lower <= before.lower).all().item<bool>()) << "radius " << radius;
      EXPECT_TRUE((regions.upper >= before.upper).all().item<bool>()) << "radius " << radius;
    }
    before = regions;
  }
  return pairs;
}

// The scores of `some` rows and the float32 numbers just below them, and radii at random.
inline std::vector<double> exact_radii(Random& random, const std::vector<double>& scores,
                                       size_t some) {
  std::vector<double> radii = {0, -1, kForever, std::pow(10, 6 * random.uniform() - 3)};
  for (size_t i = 0; i < std::min(some, scores.size()); ++i) {
    const double score = scores[(i * 7 + 2) % scores.size()];
    radii.push_back(score);
    radii.push_back(std::isinf(score) ? std::numeric_limits<float>::max() : next_below(score));
  }
  return radii;
}

// The law of nested over wild heads, one after the other: norms and floors in turn, with and
// without outward rounding, 1 to 3 outputs. Returns the number of pairs.
inline int expect_nested_law(BoundMethod method, int heads, size_t radii, uint64_t seed) {
  constexpr std::array kNorms = {Norm::kInf, Norm::kTwo, Norm::kOne};
  Random random(seed);
  int pairs = 0;
  for (int i = 0; i < heads && !testing::Test::HasFailure(); ++i) {
    ScoreOptions options;
    options.set(field::norm, kNorms[static_cast<size_t>(i % 3)]);
    options.find(field::bound)->method = method;
    options.find(field::bound)->iterations = 3;
    options.find(field::bound)->outward = i % 5 < 2;
    options.find(field::bound)->memory = size_t{1} << 30;
    options.set(field::floor, i % 2 == 0 ? 0 : 0.25 * (1 + i % 4));
    options.set(field::slope, i % 2 == 0 ? 0 : 3);
    const auto head = network_of(wild_head(random, 1 + static_cast<int64_t>(random.below(3))));
    const HeadRows made = wild_rows(random, *head, 20);
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_law(*score, made, scores, exact_radii(random, scores, radii));
  }
  return pairs;
}

// Adds an output `high` beside y: another linear layer on the same hidden units.
inline void add_high_output(Graph& graph, const torch::Tensor& weight, const torch::Tensor& bias) {
  const std::string hidden = graph.nodes.back().inputs[0];
  graph.initializers["w_high"] = weight;
  graph.initializers["b_high"] = bias;
  graph.nodes.push_back(
      make_node("Gemm", {hidden, "w_high", "b_high"}, {"high"}, {{"transB", int64_t{1}}}));
  graph.outputs.push_back(make_info("high", {kDynamic, weight.size(0)}));
}

// A wild head with a second output that is mostly, but not always, above the first.
inline Graph wild_quantile_head(Random& random, int64_t outputs) {
  Graph graph = wild_head(random, outputs);
  const torch::Tensor weight = graph.initializers[graph.nodes.back().inputs[1]];
  const torch::Tensor bias = graph.initializers[graph.nodes.back().inputs[2]];
  const double scale = std::pow(10, 2 * random.uniform() - 1);
  add_high_output(graph, weight + random_normal(random, weight.sizes().vec()) * weight.std() * 0.3,
                  bias + random_normal(random, bias.sizes().vec()).abs() * scale);
  return graph;
}

// As wild_rows; the truth of every other row lies between the quantiles or a little beside.
inline HeadRows wild_quantile_rows(Random& random, const Network& head, int64_t rows) {
  HeadRows made = wild_rows(random, head, rows);
  torch::NoGradGuard no_gradients;
  const Tensors outputs = head.run({made.features});
  for (int64_t i = 0; i < rows; i += 2) {
    const torch::Tensor low = outputs[0][i].to(torch::kDouble);
    made.truth[i] = low + (outputs[1][i].to(torch::kDouble) - low) * (1.4 * random.uniform() - 0.2);
  }
  made.truth = made.truth.to(torch::kFloat).to(torch::kDouble);
  return made;
}

// y ∈ region(v, r) ⟺ every side's score is within its radius, where each row and side has a radius
// of its own: its score, just below it, or any other. Returns the number of rows held against it.
inline int expect_side_law(const Score& score, const HeadRows& rows,
                           const std::vector<double>& scores, Random& random, int trials) {
  const int64_t sides = score.sides();
  const int64_t count = rows.features.size(0);
  EXPECT_EQ(static_cast<int64_t>(scores.size()), count * sides);
  const torch::Tensor own = torch::tensor(scores, torch::kDouble).reshape({count, sides});
  int held = 0;
  for (int trial = 0; trial < trials; ++trial) {
    torch::Tensor radius = own.clone();
    for (int64_t i = 0; i < radius.numel(); ++i) {
      double& one = radius.data_ptr<double>()[i];
      const uint64_t kind = random.below(6);
      if (kind == 0) one = scores[random.below(scores.size())];
      if (kind == 1) one = random.normal() * std::pow(10, 4 * random.uniform() - 2);
      if (kind == 2) one = random.below(2) == 0 ? 0 : kForever;
      if (kind == 3) one = std::isinf(one) ? std::numeric_limits<float>::max() : next_below(one);
      if (kind == 4) one = std::nextafter(one, -kForever);
    }
    const std::vector<bool> in = inside(score.region(rows.features, radius), rows.truth);
    const torch::Tensor within = (own <= radius).all(1);
    for (int64_t i = 0; i < count; ++i) {
      ++held;
      EXPECT_EQ(in[static_cast<size_t>(i)], within[i].item<bool>())
          << "row " << i << ", scores " << own[i] << ", radii " << radius[i] << ", truth "
          << rows.truth[i];
    }
  }
  return held;
}

// The law of feature_cqr's nested form over wild quantile heads, symmetric and asymmetric in turn.
// Returns the number of rows held against it.
inline int expect_feature_cqr_law(BoundMethod method, int heads, int trials, uint64_t seed) {
  constexpr std::array kNormsInTurn = {Norm::kInf, Norm::kTwo, Norm::kOne};
  Random random(seed);
  int held = 0, negative = 0;
  for (int i = 0; i < heads && !testing::Test::HasFailure(); ++i) {
    ScoreOptions options = FeatureCqrOptions{};
    options.set(field::asymmetric, i % 2 == 1);
    options.set(field::norm, kNormsInTurn[static_cast<size_t>(i % 3)]);
    options.find(field::bound)->method = method;
    options.find(field::bound)->iterations = 3;
    options.find(field::bound)->outward = i % 5 == 2;
    options.find(field::bound)->memory = size_t{1} << 30;
    options.set(field::floor, i % 4 < 2 ? 0 : 0.5);
    options.set(field::slope, i % 4 < 2 ? 0 : 3);
    const auto head = network_of(wild_quantile_head(random, 1 + i % 3));
    const HeadRows made = wild_quantile_rows(random, *head, 20);
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    held += expect_side_law(*score, made, scores, random, trials);
    negative += static_cast<int>(
        std::count_if(scores.begin(), scores.end(), [](double one) { return one < 0; }));
    if (score->sides() == 1) {
      held += expect_law(*score, made, scores,
                         exact_radii(random, scores, static_cast<size_t>(trials) / 2));
    }
  }
  EXPECT_GT(negative, heads);
  return held;
}

// Adds an output that is `columns` linear functions of the feature, then `op` of them (empty: as
// they are).
inline void add_linear_output(Random& random, Graph& graph, const std::string& name,
                              int64_t columns, const std::string& op) {
  const int64_t width = graph.inputs[0].shape[1];
  graph.initializers[name + "_w"] = random_normal(random, {columns, width});
  graph.initializers[name + "_b"] = random_normal(random, {columns});
  const std::string linear = op.empty() ? name : name + "_linear";
  graph.nodes.push_back(make_node("Gemm", {graph.inputs[0].name, name + "_w", name + "_b"},
                                  {linear}, {{"transB", int64_t{1}}}));
  if (!op.empty()) graph.nodes.push_back(make_node(op, {linear}, {name}));
  graph.outputs.push_back(make_info(name, {kDynamic, columns}));
}

// A wild head with heads on features that learned nonsense: a spread that may be 0, negative or
// huge, quantiles in any order, many of them equal, and a rectifier of any sign.
inline Graph wild_feature_heads(Random& random, int64_t outputs, int64_t quantiles) {
  Graph graph = wild_head(random, outputs);
  const std::array<std::string, 4> ops = {"Exp", "Relu", "", "Softplus"};
  add_linear_output(random, graph, kSpreadOutput, outputs, ops[random.below(4)]);
  add_linear_output(random, graph, kQuantilesOutput, outputs * quantiles, ops[random.below(3)]);
  add_linear_output(random, graph, kRectifierOutput, 1, ops[random.below(4)]);
  return graph;
}

// Truths as those of wild_rows, on the ends of what the heads say, or a little beside.
inline HeadRows feature_head_rows(Random& random, const Network& head, int64_t rows) {
  HeadRows made = wild_rows(random, head, rows);
  torch::NoGradGuard no_gradients;
  const Tensors answers = head.run({made.features});
  const torch::Tensor mean = answers[0].to(torch::kDouble);
  const torch::Tensor grid =
      answers[2].to(torch::kDouble).reshape({rows, mean.size(1), -1});  // [N, K, Q]
  for (int64_t i = 0; i < rows; i += 2) {
    const auto level = static_cast<int64_t>(random.below(static_cast<uint64_t>(grid.size(2))));
    made.truth[i] = mean[i] + grid[i].select(1, level) * (i % 4 == 0 ? 1 : 1 + random.uniform());
  }
  return made;
}

}  // namespace fcp
