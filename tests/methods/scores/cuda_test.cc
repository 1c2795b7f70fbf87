// Scores on a CUDA device: the law to the last bit, the same answers as on the CPU, and the same
// bits in batches of any size.
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

#define SKIP_WITHOUT_CUDA \
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device"

std::shared_ptr<const Network> cuda_network(const Graph& graph) {
  return std::make_shared<const Network>(graph, NetworkOptions{.device = torch::kCUDA});
}

// Regions as the helpers of heads.h take them.
class HostRegions : public Score {
 public:
  explicit HostRegions(std::unique_ptr<Score> score) : score_(std::move(score)) {}

  using Score::region;
  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    return score_->score(features.to(torch::kCUDA), truth);
  }
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Regions made = score_->region(features.to(torch::kCUDA), radius);
    return {made.prediction.cpu(), made.lower.cpu(), made.upper.cpu(), {}};
  }

 private:
  std::unique_ptr<Score> score_;
};

// Linear–ReLU–Linear, from one unit to more than shared memory holds, with wild weights.
Graph wild_relu_head(Random& random, int64_t features, int64_t units, int64_t outputs) {
  Graph graph = make_mlp({features, units, outputs});
  for (auto& [name, tensor] : graph.initializers) {
    tensor = random_normal(random, tensor.shape()) * std::pow(10, 2 * random.uniform() - 1);
  }
  return graph;
}

ScoreOptions nested_options(int number) {
  constexpr std::array kNorms = {Norm::kInf, Norm::kTwo, Norm::kOne};
  ScoreOptions options;
  options.set(field::norm, kNorms[static_cast<size_t>(number % 3)]);
  options.set(field::floor, number % 2 == 0 ? 0 : 0.5);
  options.set(field::slope, number % 2 == 0 ? 0 : 3);
  return options;
}

TEST(CudaScores, NestedObeysTheLaw) {
  SKIP_WITHOUT_CUDA;
  Random random(1);
  int pairs = 0, number = 0;
  for (const int64_t units : {1, 5, 32, 64, 100, 513, 1500}) {
    for (const int64_t outputs : {1, 3}) {
      const Graph graph =
          wild_relu_head(random, 1 + static_cast<int64_t>(random.below(80)), units, outputs);
      const HeadRows made = wild_rows(random, *network_of(graph), 50);
      const HostRegions score(make_score(nested_options(number++), cuda_network(graph)));
      const std::vector<double> scores = score.score(made.features, made.truth);
      pairs += expect_law(score, made, scores, exact_radii(random, scores, 10));
    }
  }
  EXPECT_GT(pairs, 10000);
}

TEST(CudaScores, NestedIsThatOfTheCpuInBatchesOfAnySize) {
  SKIP_WITHOUT_CUDA;
  Random random(2);
  for (int number = 0; number < 4; ++number) {
    const Graph graph = wild_relu_head(random, 37, 64, 2);
    const HeadRows made = wild_rows(random, *network_of(graph), 333);
    const ScoreOptions options = nested_options(number);
    const HostRegions cuda(make_score(options, cuda_network(graph)));
    const auto cpu = make_score(options, network_of(graph));
    const std::vector<double> all = cuda.score(made.features, made.truth);
    const std::vector<double> expected = cpu->score(made.features, made.truth);
    for (int64_t i = 0; i < 333; ++i) {
      const auto at = static_cast<size_t>(i);
      if (i % 10 != 9) {  // the others have the CPU's prediction as their truth
        EXPECT_NEAR(all[at], expected[at], 1e-2 * expected[at]) << i;
      }
      const std::vector<double> one =
          cuda.score(made.features.narrow(0, i, 1), made.truth.narrow(0, i, 1));
      EXPECT_EQ(one[0], all[at]) << i;
    }
    for (const double radius : {0.0, 0.3, 40.0, kForever, -1.0}) {
      const Regions ours = cuda.region(made.features, radius);
      const Regions theirs = cpu->region(made.features, radius);
      const double size = theirs.prediction.abs().max().item<double>();
      EXPECT_TRUE(torch::allclose(ours.prediction, theirs.prediction, 1e-4, 1e-5 * size));
      EXPECT_TRUE(torch::allclose(ours.lower, theirs.lower, 1e-4, 1e-5 * size)) << radius;
      EXPECT_TRUE(torch::allclose(ours.upper, theirs.upper, 1e-4, 1e-5 * size)) << radius;
    }
  }
}

TEST(CudaScores, NestedSaysWhatIsNotANumberOrOutOfReach) {
  SKIP_WITHOUT_CUDA;
  Graph graph = make_mlp({1, 1, 1});
  graph.initializers["w1"] = graph.initializers["w2"] = torch::ones({1, 1});
  graph.initializers["b1"] = graph.initializers["b2"] = torch::zeros({1});
  const auto score = make_score(ScoreOptions(), cuda_network(graph));
  const torch::Tensor v = torch::tensor({1.0f, 1.0f, 1.0f, std::nanf("")}).unsqueeze(1);
  const torch::Tensor y = torch::tensor({3.0, -1.0, std::nan(""), 1.0}, torch::kDouble);
  const std::vector<double> scores = score->score(v.to(torch::kCUDA), y.unsqueeze(1));
  EXPECT_NEAR(scores[0], 2, 1e-6);  // the first float32 whose sum with 1 is rounded to 3
  EXPECT_EQ(scores[1], kForever);   // a ReLU is never negative
  EXPECT_TRUE(std::isnan(scores[2]));
  EXPECT_TRUE(std::isnan(scores[3]));
}

// Whatever the head and the bound: bisection on the device.
TEST(CudaScores, NestedOfOtherHeadsObeysTheLaw) {
  SKIP_WITHOUT_CUDA;
  Random random(3);
  int pairs = 0;
  for (int number = 0; number < 4; ++number) {
    ScoreOptions options = nested_options(number);
    options.find(field::bound)->method = number % 4 == 3 ? BoundMethod::kCrown : BoundMethod::kIbp;
    const Graph graph = wild_head(random, 1 + number % 2);
    const HeadRows made = wild_rows(random, *network_of(graph), 20);
    const HostRegions score(make_score(options, cuda_network(graph)));
    const std::vector<double> scores = score.score(made.features, made.truth);
    pairs += expect_law(score, made, scores, exact_radii(random, scores, 5));
  }
  EXPECT_GT(pairs, 500);
}

TEST(CudaScores, LearnedHeadsObeyTheLaw) {
  SKIP_WITHOUT_CUDA;
  Random random(4);
  int pairs = 0;
  for (int number = 0; number < 12; ++number) {
    const Graph graph = wild_feature_heads(random, 1 + number % 2, 2 + number * 3);
    const auto head = cuda_network(graph);
    const HeadRows made = feature_head_rows(random, *network_of(graph), 40);
    for (const char* name : {"spread", "quantiles", "density"}) {
      const HostRegions score(make_score(ScoreOptions(name), head));
      const std::vector<double> scores = score.score(made.features, made.truth);
      std::vector<double> radii = {0, -1, kForever, -kForever};
      for (size_t i = 0; i < 10; ++i) {
        radii.push_back(scores[i]);
        radii.push_back(std::nextafter(scores[i], -kForever));
      }
      pairs += expect_law(score, made, scores, radii);
    }
  }
  EXPECT_GT(pairs, 10000);
}

// The network hands its inputs on, so that both devices score the same numbers.
TEST(CudaScores, LearnedHeadsGiveTheBitsOfTheCpu) {
  SKIP_WITHOUT_CUDA;
  Random random(5);
  constexpr int64_t kLevels = 9, kRows = 400;
  Graph graph = linear_head(torch::eye(1, 2 + kLevels), torch::zeros({1}));
  const torch::Tensor unit = torch::eye(2 + kLevels);
  const auto hand_on = [&](const std::string& name, int64_t from, int64_t columns) {
    graph.initializers[name + "_w"] = unit.narrow(0, from, columns).contiguous();
    graph.nodes.push_back(make_node("Gemm", {"x", name + "_w"}, {name}, {{"transB", int64_t{1}}}));
    graph.outputs.push_back(make_info(name, {kDynamic, columns}));
  };
  hand_on(kSpreadOutput, 1, 1);
  hand_on(kQuantilesOutput, 2, kLevels);
  torch::Tensor v = random_normal(random, {kRows, 2 + kLevels});
  v.narrow(0, 0, 100).mul_(4).round_();  // equal quantiles, spreads of 0
  v[7][0] = v[8][3] = std::nanf("");
  const torch::Tensor y = 5 * random_normal(random, {kRows, 1}).to(torch::kDouble);
  for (const char* name : {"spread", "quantiles", "density"}) {
    SCOPED_TRACE(name);
    const HostRegions cuda(make_score(ScoreOptions(name), cuda_network(graph)));
    const auto cpu = make_score(ScoreOptions(name), network_of(graph));
    const std::vector<double> ours = cuda.score(v, y), theirs = cpu->score(v, y);
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_TRUE(ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i])))
          << i << ": " << ours[i] << ", expected " << theirs[i];
    }
    for (const double radius : {-0.3, 0.0, 0.7, 3.25, 11.0, 1e300, kForever}) {
      const Regions a = cuda.region(v, radius), b = cpu->region(v, radius);
      EXPECT_TRUE(a.lower.nan_to_num(12345.0).equal(b.lower.nan_to_num(12345.0))) << radius;
      EXPECT_TRUE(a.upper.nan_to_num(12345.0).equal(b.upper.nan_to_num(12345.0))) << radius;
    }
  }
}

}  // namespace
}  // namespace fcp
