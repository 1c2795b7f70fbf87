// Any number of threads gives the same bits, and the caller's threads come back.

#include "fcp/methods/scores/score.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

struct Answers {
  std::vector<double> scores;
  Regions regions;
};

Answers with_threads(int threads, const std::function<Answers()>& ask) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  const Answers answers = ask();
  EXPECT_EQ(at::get_num_threads(), threads);
  at::set_num_threads(before);
  return answers;
}

TEST(SharedRows, AnyNumberOfThreadsGivesTheSameBits) {
  torch::manual_seed(1);
  Random random(1);
  Graph graph = make_mlp({5, 64, 2});
  for (Node& node : graph.nodes) {
    if (node.op == "Relu") node.op = "Tanh";
  }
  const auto head = network_of(graph);
  const torch::Tensor v = random_normal(random, {211, 5});
  const torch::Tensor y = random_normal(random, {211, 2}).to(torch::kDouble);
  for (const std::string name : {"residual", "nested", "linearized"}) {
    ScoreOptions options(name);
    const std::unique_ptr<Score> score = make_score(options, head);
    const torch::Tensor radius = torch::rand({211, 1}, torch::kDouble);
    const auto ask = [&] { return Answers{score->score(v, y), score->region(v, radius)}; };
    const Answers one = with_threads(1, ask), three = with_threads(3, ask);
    EXPECT_EQ(one.scores, three.scores) << name;
    EXPECT_TRUE(torch::equal(one.regions.prediction, three.regions.prediction)) << name;
    EXPECT_TRUE(torch::equal(one.regions.lower, three.regions.lower)) << name;
    EXPECT_TRUE(torch::equal(one.regions.upper, three.regions.upper)) << name;
    EXPECT_FALSE(three.regions.members.defined());
    EXPECT_FALSE(three.regions.parts.defined());
  }
}

// A union of as many intervals, [i, i + ½], as the largest feature of the batch says.
class Unions : public Score {
 public:
  std::vector<double> score(const torch::Tensor&, const torch::Tensor&) const override {
    return {};
  }
  Regions region(const torch::Tensor& features, const torch::Tensor&) const override {
    const auto most = static_cast<int64_t>(features.max().item<float>());
    const torch::Tensor first = torch::arange(most, torch::kDouble);
    const torch::Tensor some = torch::stack({first, first + 0.5}, 1);
    const torch::Tensor none = torch::tensor({kInfinity, -kInfinity}, torch::kDouble);
    const torch::Tensor there = first.unsqueeze(0) < features;
    const torch::Tensor parts = torch::where(there.unsqueeze(2), some, none).unsqueeze(1);
    return {features, features, features, {}, parts};
  }
};

TEST(SharedRows, UnionsOfAnyNumberOfIntervals) {
  const std::unique_ptr<Score> score =
      share_rows(std::make_unique<Unions>(), network_of(make_mlp({1, 2, 1})));
  const torch::Tensor v = 1 + torch::arange(100, torch::kFloat).div(30, "floor").unsqueeze(1);
  const auto ask = [&] { return Answers{{}, score->region(v, 1.0)}; };
  const torch::Tensor one = with_threads(1, ask).regions.parts;
  EXPECT_EQ(one.sizes(), (std::vector<int64_t>{100, 1, 4, 2}));
  EXPECT_TRUE(torch::equal(one, with_threads(3, ask).regions.parts));
}

TEST(SharedRows, AnErrorOfAShareIsThrown) {
  class Failing : public Score {
   public:
    std::vector<double> score(const torch::Tensor& features, const torch::Tensor&) const override {
      if (features.max().item<float>() == 99) fail("row 99");
      return std::vector<double>(static_cast<size_t>(features.size(0)));
    }
    Regions region(const torch::Tensor&, const torch::Tensor&) const override { return {}; }
  };
  const std::unique_ptr<Score> score =
      share_rows(std::make_unique<Failing>(), network_of(make_mlp({1, 2, 1})));
  const auto ask = [&](int64_t rows) {
    const torch::Tensor v = torch::arange(rows, torch::kFloat).unsqueeze(1);
    return with_threads(3, [&] { return Answers{score->score(v, v), {}}; });
  };
  EXPECT_THROW(ask(100), Error);
  EXPECT_EQ(ask(99).scores.size(), 99u);
}

}  // namespace
}  // namespace fcp
