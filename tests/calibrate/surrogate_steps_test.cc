#include "fcp/calibrate/surrogate_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// y = v: after M steps of rate 0.1 a feature has gone the share 1 − 0.8^M of its error.
struct Identity {
  Identity() {
    Graph graph = make_mlp({1, 1});
    graph.initializers["w1"] = torch::ones({1, 1});
    graph.initializers["b1"] = torch::zeros({1});
    head = std::make_shared<const Network>(graph);
    score = SurrogateOptions{.step_rate = 0.1};
    rows.calibration_features = torch::linspace(-1, 1, 19).reshape({19, 1});
    rows.calibration_truth = rows.calibration_features + 1;
    rows.validation_features = torch::linspace(-1, 1, 20).reshape({20, 1});
    torch::Tensor error = torch::full({20, 1}, 0.5);
    error[3] = -0.7;
    error[8] = 100;
    rows.validation_truth = rows.validation_features + error;
  }

  std::shared_ptr<const Network> head;
  ScoreOptions score;
  StepsFolds rows;
};

TEST(ChooseSteps, TakesTheFirstThatCoversMore) {
  const Identity identity;
  const StepsChoice choice = choose_steps(identity.head, identity.score, identity.rows, Level(0.1));
  EXPECT_EQ(choice.steps, 6);  // 0.8^6 ≤ 0.3; 18 of 20 are not more than 0.9
  EXPECT_THAT(choice.coverage, ElementsAre(0, 0, 0, 0.9, 0.9, 0.95));
  EXPECT_EQ(choose_steps(identity.head, identity.score, identity.rows, Level(0.2)).steps, 4);
}

TEST(ChooseSteps, SaysTheBestItSaw) {
  const Identity identity;
  EXPECT_THAT(
      [&] { choose_steps(identity.head, identity.score, identity.rows, Level(0.1), 5); },
      ThrowsMessage<Error>("surrogate: after none of 5 steps do the bands cover more than 90 % of "
                           "the validation rows (best 90 %); try another rate, a looser bound, or "
                           "a score that needs no steps"));
}

TEST(ChooseSteps, RefusesToTakeNone) {
  const Identity identity;
  EXPECT_THAT([&] { choose_steps(identity.head, identity.score, identity.rows, Level(0.1), 0); },
              ThrowsMessage<Error>("surrogate: at most 0 steps were allowed, expected 1 or more"));
}

// Nine calibration rows are too few for α = 0.05: everything is covered by an infinite radius,
// unless the rank is clamped as the paper's code does.
TEST(ChooseSteps, ClampsTheRankAsThePaperDoes) {
  Identity identity;
  identity.rows.calibration_features = identity.rows.calibration_features.narrow(0, 0, 9);
  identity.rows.calibration_truth = identity.rows.calibration_truth.narrow(0, 0, 9);
  identity.rows.validation_truth[8] = identity.rows.validation_features[8];
  EXPECT_EQ(choose_steps(identity.head, identity.score, identity.rows, Level(0.05)).steps, 1);
  identity.score.set(field::paper, true);
  EXPECT_EQ(choose_steps(identity.head, identity.score, identity.rows, Level(0.05)).steps, 6);
}

// low = v − 1, high = v + 1, and the truth v + 2 in all calibration rows. After M steps of rate 0.1
// the share s = 1 − 0.8^M of each distance is gone, so the radii are −3s and s, and the bands
// [v − 1 + 3s, v + 1 + s].
struct TwoQuantiles {
  TwoQuantiles() {
    Graph graph = make_mlp({1, 1});
    graph.initializers["w1"] = torch::ones({1, 1});
    graph.initializers["b1"] = torch::full({1}, -1.0f);
    graph.initializers["b2"] = torch::ones({1});
    graph.nodes.push_back(make_node("Gemm", {"x", "w1", "b2"}, {"high"}, {{"transB", int64_t{1}}}));
    graph.outputs.push_back(make_info("high", {kDynamic, 1}));
    head = std::make_shared<const Network>(graph);
    score = FeatureCqrOptions{.step_rate = 0.1, .paper = true};
    rows.calibration_features = torch::linspace(-1, 1, 19).reshape({19, 1});
    rows.calibration_truth = rows.calibration_features + 2;
    rows.validation_features = torch::linspace(-1, 1, 20).reshape({20, 1});
  }

  // The first `many` truths are at distance 1.1 from the feature, in the bands from the first step
  // on; the next two at 1.4, in them from the third on (s = 0.2, 0.36, 0.488); the others never.
  StepsChoice choose(int64_t many, const Level& level) {
    torch::Tensor error = torch::full({20, 1}, 100.0f);
    error.narrow(0, 0, many).fill_(1.1);
    error.narrow(0, many, 2).fill_(1.4);
    rows.validation_truth = rows.validation_features + error;
    return choose_steps(head, score, rows, level);
  }

  std::shared_ptr<const Network> head;
  ScoreOptions score;
  StepsFolds rows;
};

TEST(ChooseSteps, OfFeatureCqrTakesTheFirstThatCoversMore) {
  TwoQuantiles quantiles;
  const StepsChoice choice = quantiles.choose(17, Level(0.1));
  EXPECT_EQ(choice.steps, 3);
  EXPECT_THAT(choice.coverage, ElementsAre(0.85, 0.85, 0.95));
  EXPECT_EQ(quantiles.choose(18, Level(0.1)).steps, 3);  // 18 of 20 are not more than 0.9
  EXPECT_EQ(quantiles.choose(18, Level(0.2)).steps, 1);
  EXPECT_EQ(quantiles.choose(4, Level(0.8)).steps, 3);  // nor are 4 more than 0.2
  // The scores of the chosen steps are those it was chosen by.
  quantiles.score.set(field::steps, 3);
  const std::vector<double> scores = make_score(quantiles.score, quantiles.head)
                                         ->score(torch::zeros({1, 1}), torch::full({1, 1}, 2.0));
  EXPECT_NEAR(scores[0], -3 * 0.488, 1e-6);
  EXPECT_NEAR(scores[1], 0.488, 1e-6);
}

TEST(ChooseSteps, OfFeatureCqrSaysTheBestItSaw) {
  TwoQuantiles quantiles;
  EXPECT_THAT([&] { quantiles.choose(5, Level(0.1)); },
              ThrowsMessage<Error>(HasSubstr("after none of 200 steps do the bands cover more than "
                                             "90 % of the validation rows (best 35 %)")));
}

}  // namespace
}  // namespace fcp
