#include "fcp/calibrate/choose_cut.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// z1 = (x0, 100 x1), y = relu(z1_0) + relu(z1_1), and noise only where x0 > 0.
//
// Cut at z1 the band is wide where a unit is on, as the noise is; cut behind the ReLU it is the
// same everywhere; cut at the input the second unit drowns the first.
struct NoisyPart {
  NoisyPart(int64_t rows, uint64_t seed) {
    graph = make_mlp({2, 2, 1});
    graph.initializers["w1"] = torch::tensor({{1.0f, 0.0f}, {0.0f, 100.0f}});
    graph.initializers["b1"] = torch::zeros({2});
    graph.initializers["w2"] = torch::ones({1, 2});
    graph.initializers["b2"] = torch::zeros({1});
    Random random(seed);
    x = torch::empty({rows, 2});
    torch::Tensor noise = torch::empty({rows, 1});
    for (int64_t i = 0; i < rows; ++i) {
      const bool on = random.below(2) == 0;
      x[i][0] = on ? 20 : -20;
      x[i][1] = random.below(2) == 0 ? 1 : -1;
      noise[i][0] = on ? random.normal() : 0;
    }
    y = Network(graph).forward(x) + noise;
  }

  Graph graph;
  torch::Tensor x, y;
};

TEST(SelectCut, FindsTheLayerThatKnowsTheNoise) {
  const NoisyPart data(2000, 1);
  SelectionOptions options;
  options.floors = {0};
  options.scaled = false;
  std::vector<std::string> seen;
  options.observe = [&](const Candidate& candidate) { seen.push_back(candidate.cut); };
  const Selection selection = select_cut(data.graph, {}, data.x, data.y, options);
  EXPECT_THAT(seen, ElementsAre("x", "z1", "h1"));
  ASSERT_EQ(selection.candidates.size(), 3U);
  EXPECT_EQ(selection.candidates[selection.chosen].cut, "z1");
  // z1: radius q with P(|N| ≤ q) + P(|N| ≤ 2q) = 1.6, length 2q on average: 1.87.
  // h1: 0.8-quantile of |N| to either side: 2.56.
  EXPECT_NEAR(selection.candidates[1].length, 1.87, 0.2);
  EXPECT_NEAR(selection.candidates[2].length, 2.56, 0.25);
  EXPECT_GT(selection.candidates[0].length, 20);
  for (const Candidate& candidate : selection.candidates) {
    EXPECT_EQ(candidate.skipped, "");
    EXPECT_NEAR(candidate.coverage, 0.9, 0.05) << candidate.cut;
  }
}

// What each feature is measured in makes no difference to balls that follow its spread.
TEST(SelectCut, ScaledBallsDoNotFeelUnits) {
  const NoisyPart data(400, 2);
  Graph other = data.graph;
  const torch::Tensor units = torch::tensor({64.0f, 0.125f});
  other.initializers["w1"] = data.graph.initializers.at("w1").tensor() * units.unsqueeze(1);
  other.initializers["w2"] = data.graph.initializers.at("w2").tensor() / units;
  SelectionOptions options;
  options.cuts = {"z1"};
  const Selection one = select_cut(data.graph, {}, data.x, data.y, options);
  const Selection two = select_cut(other, {}, data.x, data.y, options);
  ASSERT_EQ(one.candidates.size(), two.candidates.size());
  EXPECT_EQ(one.chosen, two.chosen);
  for (size_t i = 0; i < one.candidates.size(); ++i) {
    EXPECT_NEAR(one.candidates[i].length, two.candidates[i].length,
                1e-5 * one.candidates[i].length);
    EXPECT_EQ(one.candidates[i].score.value(field::scale).size(), 2U);
  }
  options.scaled = false;
  const Selection plain = select_cut(other, {}, data.x, data.y, options);
  EXPECT_GT(std::abs(plain.candidates[0].length - two.candidates[0].length), 0.1);
  EXPECT_TRUE(plain.candidates[0].score.value(field::scale).empty());
}

TEST(SelectCut, SaysWhichCutsWouldTakeTooLongOrTooMuchMemory) {
  const NoisyPart data(200, 1);
  SelectionOptions options;
  options.work = 0;
  options.cheapest = false;
  EXPECT_THAT([&] { select_cut(data.graph, {}, data.x, data.y, options); },
              ThrowsMessage<Error>(HasSubstr(" operations, expected at most 0")));
  options.cheapest = true;  // a choice that was asked for has one candidate at least
  const Selection one = select_cut(data.graph, {}, data.x, data.y, options);
  EXPECT_EQ(std::count_if(one.candidates.begin(), one.candidates.end(),
                          [](const Candidate& each) { return each.skipped.empty(); }),
            static_cast<std::ptrdiff_t>(options.floors.size()));
  options.work = kMostWork;
  ScoreOptions score;
  score.find(field::bound)->memory = 10;
  EXPECT_THAT([&] { select_cut(data.graph, score, data.x, data.y, options); },
              ThrowsMessage<Error>(HasSubstr("more memory")));
}

// Counted, not timed: outputs and rows make it dear, a shorter head makes it cheap.
TEST(CutWork, GrowsWithRowsOutputsAndHeads) {
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({10, 4});
  const ScoreOptions linearized = LinearizedOptions{};
  const CutWork few(make_mlp({4, 64, 64, 1}), linearized, x);
  const CutWork many(make_mlp({4, 64, 64, 256}), linearized, x);
  EXPECT_GT(many.of("h1", 100, 10), 50 * few.of("h1", 100, 10));
  EXPECT_GT(few.of("h1", 100'000, 10), 50 * few.of("h1", 1000, 10));
  EXPECT_GT(many.of("x", 1000, 10), many.of("h1", 1000, 10));
  EXPECT_GT(many.of("h1", 1000, 10), many.of("h2", 1000, 10));
  const CutWork bands(make_mlp({4, 64, 64, 256}), NestedOptions{}, x);
  EXPECT_LT(bands.of("h1", 1000, 10), many.of("h1", 1000, 10));
}

TEST(SelectCut, TriesEveryFloor) {
  const NoisyPart data(400, 2);
  SelectionOptions options;
  options.cuts = {"h1", "z1"};
  const Selection selection = select_cut(data.graph, {}, data.x, data.y, options);
  ASSERT_EQ(selection.candidates.size(), 6U);
  for (size_t i = 0; i < 6; ++i) {
    const Candidate& candidate = selection.candidates[i];
    EXPECT_EQ(candidate.cut, options.cuts[i / 3]);
    EXPECT_EQ(candidate.score.value(field::floor), options.floors[i % 3]);
    EXPECT_EQ(candidate.score.value(field::slope) > 0, candidate.score.value(field::floor) > 0);
    EXPECT_GE(candidate.length, selection.candidates[selection.chosen].length);
  }
  // Where all bands are alike the floor changes the radius and nothing else.
  EXPECT_NEAR(selection.candidates[1].length, selection.candidates[0].length, 1e-3);
  EXPECT_NEAR(selection.candidates[2].length, selection.candidates[0].length, 1e-3);
}

TEST(SelectCut, NamesWhatItSkips) {
  torch::manual_seed(3);
  Graph graph = make_mlp({3, 4, 1});
  graph.nodes[1].op = "Hardmax";
  const torch::Tensor x = torch::randn({60, 3});
  const torch::Tensor y = Network(graph).forward(x) + torch::randn({60, 1});
  ScoreOptions score;
  score.find(field::bound)->method = BoundMethod::kCrown;
  const Selection selection = select_cut(graph, score, x, y, {});
  ASSERT_EQ(selection.candidates.size(), 5U);
  const std::string reason =
      "Hardmax node 'h1_node': has no bounds; cut later, behind it, or use a score that needs no "
      "bounds: residual, linearized";
  EXPECT_EQ(selection.candidates[0].cut, "x");
  EXPECT_EQ(selection.candidates[0].skipped, reason);
  EXPECT_EQ(selection.candidates[1].cut, "z1");
  EXPECT_EQ(selection.candidates[1].skipped, reason);
  EXPECT_EQ(selection.candidates[selection.chosen].cut, "h1");
  SelectionOptions options;
  options.cuts = {"x"};
  EXPECT_THAT(
      [&] { select_cut(graph, score, x, y, options); },
      ThrowsMessage<Error>("no cut gives finite intervals on the 60 selection rows; x: " + reason));
  options.cuts = {"x", "z1"};
  EXPECT_THAT([&] { select_cut(graph, score, x, y, options); },
              ThrowsMessage<Error>("no cut gives finite intervals on the 60 selection rows; x: " +
                                   reason + " (at 2 cuts)"));
}

TEST(SelectCut, FailsWhereNothingIsFinite) {
  const NoisyPart data(17, 4);  // halves of 8 and 9: too few for one tenth
  EXPECT_THAT([&] { select_cut(data.graph, {}, data.x, data.y, {}); },
              ThrowsMessage<Error>("no cut gives finite intervals on the 17 selection rows"));
}

TEST(MeasureSlope, LinearHeadInClosedForm) {
  torch::manual_seed(5);
  Graph graph = make_mlp({4, 2});
  const torch::Tensor v = torch::randn({50, 4});
  const auto head = std::make_shared<const Network>(graph);
  const torch::Tensor y = head->forward(v) + torch::randn({50, 2});
  const torch::Tensor w = graph.initializers["w1"].tensor().abs();
  for (const char* name : {"nested", "linearized"}) {
    ScoreOptions options(name);
    EXPECT_NEAR(measure_slope(*make_score(options, head), v, y, Level(0.1)),
                2 * w.sum(1).mean().item<double>(), 1e-4)
        << name;
    options.set(field::norm, Norm::kOne);
    EXPECT_NEAR(measure_slope(*make_score(options, head), v, y, Level(0.1)),
                2 * w.amax(1).mean().item<double>(), 1e-4)
        << name;
  }
  // Too few rows, or all of them predicted exactly: no slope.
  const std::unique_ptr<Score> nested = make_score({}, head);
  EXPECT_EQ(measure_slope(*nested, v.narrow(0, 0, 8), y.narrow(0, 0, 8), Level(0.1)), 0);
  EXPECT_EQ(measure_slope(*nested, v, head->forward(v), Level(0.1)), 0);
}

}  // namespace
namespace {

TEST(DefaultCut, LeavesTwoLayersToTheHead) {
  const auto usual = [](const Graph& network) { return default_cut(network, {}).cut; };
  EXPECT_EQ(usual(make_mlp({3, 4, 4, 4, 1})), "h2");
  EXPECT_EQ(usual(make_mlp({3, 4, 4, 1})), "h1");
  EXPECT_EQ(usual(make_mlp({3, 4, 1})), "x");
  EXPECT_EQ(usual(make_mlp({3, 1})), "x");
  // Behind its first convolution only one layer is left.
  EXPECT_EQ(usual(make_residual_network()), "x");
}

TEST(DefaultCut, OfLabelsIsBeforeTheLastLayer) {
  EXPECT_EQ(default_cut(make_mlp({3, 4, 4, 5}), FeatureMarginOptions{}).cut, "h2");
  EXPECT_EQ(default_cut(make_mlp({3, 5}), FeatureMarginOptions{}).cut, "x");
}

// As SqueezeNet ends: the last layer has a ReLU behind it, and averages follow.
TEST(DefaultCut, OfLabelsIsBehindAReluThatFollowsTheLastLayer) {
  Graph graph = make_conv_head(2, 4, 3, 1);
  graph.nodes[2].outputs = {"z"};
  graph.nodes.push_back(make_node("Relu", {"z"}, {"r"}));
  graph.nodes.push_back(make_node("GlobalAveragePool", {"r"}, {"pooled"}));
  graph.nodes.push_back(make_node("Flatten", {"pooled"}, {"y"}));
  graph.outputs = {make_info("y", {kDynamic, 3})};
  graph.inputs[0].shape = {kDynamic, 2, 6, 6};
  EXPECT_EQ(default_cut(graph, FeatureMarginOptions{}).cut, "r");
}

// Time first, as recurrent networks have it: a tensor [2, N, 3] has no rows to be a feature of.
TEST(DefaultCut, HasTheRowsInFront) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 6})};
  graph.outputs = {make_info("y", {kDynamic, 1})};
  graph.initializers = {{"shape", torch::tensor({-1, 2, 3}, torch::kLong)},
                        {"w1", torch::randn({3, 4})},
                        {"w2", torch::randn({4, 1})}};
  graph.nodes = {make_node("Reshape", {"x", "shape"}, {"v"}),
                 make_node("Transpose", {"v"}, {"t"}, {{"perm", std::vector<int64_t>{1, 0, 2}}}),
                 make_node("MatMul", {"t", "w1"}, {"m"}),
                 make_node("Tanh", {"m"}, {"h"}),
                 make_node("ReduceMean", {"h"}, {"r"},
                           {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}}),
                 make_node("MatMul", {"r", "w2"}, {"y"})};
  EXPECT_EQ(default_cut(graph, {}).cut, "v");
}

TEST(DefaultCut, TakesASmallerFeatureAndSaysSo) {
  const CutChoice choice = default_cut(make_mlp({3, kLargestFeature + 1, 8, 1}), {});
  EXPECT_EQ(choice.cut, "h2");
  EXPECT_EQ(
      choice.note,
      "cut: taking 'h2' with 8 numbers per row, before the last layer; the feature before the "
      "last two, 'h1', has 4097");
  EXPECT_EQ(default_cut(make_mlp({3, kLargestFeature, 8, 1}), {}).note, "");
}

TEST(DefaultCut, LeavesNodesWithoutBoundsBeforeIt) {
  Graph graph = make_mlp({3, 4, 4, 4, 1});
  graph.nodes[3].op = "Hardmax";
  EXPECT_EQ(default_cut(graph, {}).cut, "h2");
  graph.nodes[5].op = "Hardmax";
  const CutChoice choice = default_cut(graph, {});
  EXPECT_EQ(choice.cut, "h3");
  EXPECT_EQ(choice.note,
            "cut: taking 'h3'; before it, at 'h2', Hardmax node 'h3_node' has no bounds");
  EXPECT_EQ(default_cut(graph, LinearizedOptions{}).cut, "h2");
  graph.nodes.back().outputs = {"last"};
  graph.nodes.push_back(make_node("Hardmax", {"last"}, {"y"}));
  EXPECT_THAT([&] { default_cut(graph, {}); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr(
                  "this network has none: Hardmax node 'y_node' has no bounds")));
}

TEST(DefaultCut, LooksAtTheOutputThatIsAskedFor) {
  Graph graph = make_mlp({3, 4, 4, 4, 1});
  graph.nodes.push_back(make_node("Add", {"h1", "h2"}, {"other"}));
  graph.outputs.push_back(make_info("other", {kDynamic, 4}));
  EXPECT_EQ(default_cut(graph, ScoreOptions(NestedOptions{}, {.output = "y"})).cut, "h2");
  EXPECT_EQ(default_cut(graph, ScoreOptions(NestedOptions{}, {.output = "other"})).cut, "x");
}

}  // namespace
}  // namespace fcp
