#include "fcp/calibrate/label_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"

namespace fcp {
namespace {

double cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels, double temperature) {
  return -torch::log_softmax(logits.to(torch::kDouble) / temperature, 1)
              .gather(1, labels)
              .mean()
              .item<double>();
}

// Labels drawn at temperature 1, logits then sharpened threefold: the best temperature is near 3,
// and no other does better.
TEST(LabelSelection, TemperatureMinimisesTheCrossEntropy) {
  Random random(1);
  const torch::Tensor logits = random_normal(random, {4000, 6});
  const torch::Tensor labels = drawn_labels(random, logits);
  const torch::Tensor sharp = 3 * logits;
  const double best = best_temperature(sharp, labels);
  EXPECT_NEAR(best, 3, 0.5);
  for (const double other : {0.999, 1.001, 0.5, 2.0}) {
    EXPECT_LT(cross_entropy(sharp, labels, best), cross_entropy(sharp, labels, best * other));
  }
  const ScoreOptions chosen =
      choose_temperature(ApsOptions{}, logits_as_features(6), {sharp, labels});
  EXPECT_DOUBLE_EQ(chosen.value(field::temperature), best);
}

// Rows that are all right want T → 0, rows that are all wrong T → ∞: the ends are kept.
TEST(LabelSelection, TemperatureStaysInItsRange) {
  const torch::Tensor logits = torch::tensor({{5.f, 0.f}, {0.f, 7.f}});
  const double right = best_temperature(logits, torch::tensor({{0}, {1}}, torch::kLong));
  const double wrong = best_temperature(logits, torch::tensor({{1}, {0}}, torch::kLong));
  EXPECT_GE(right, 0.01);
  EXPECT_LT(right, 1);
  EXPECT_LE(wrong, 100);
  EXPECT_GT(wrong, 10);
}

// The first number of steps whose sets cover, held against the score itself at that number and one
// below.
TEST(LabelSelection, SampledStepsAreTheFirstThatCover) {
  Random random(3);
  const auto head = network_of(linear_head(random_normal(random, {5, 3}), torch::zeros({5})));
  const torch::Tensor features = random_normal(random, {400, 3});
  const LabelledFeatures rows{features, drawn_labels(random, head->forward(features))};
  const Level level(0.2);
  const ScoreOptions chosen =
      choose_sampled_steps(FeatureSampledOptions{.step_rate = 0.2}, head, rows, level);
  ASSERT_GT(chosen.value(field::steps), 1);
  for (const int steps : {chosen.value(field::steps), chosen.value(field::steps) - 1}) {
    ScoreOptions options = chosen;
    options.set(field::steps, steps);
    const auto score = make_score(options, head);
    const double radius = conformal_quantile(
        score->score(features.narrow(0, 0, 200), rows.labels.narrow(0, 0, 200)), level);
    const torch::Tensor members = score->region(features.narrow(0, 200, 200), radius).members;
    const double covered =
        members.gather(1, rows.labels.narrow(0, 200, 200)).to(torch::kDouble).mean().item<double>();
    EXPECT_EQ(covered > 0.8, steps == chosen.value(field::steps)) << covered;
  }
  try {
    choose_sampled_steps(FeatureSampledOptions{.step_rate = 1e-6}, head, rows, level, 2);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("none of 2 steps"));
  }
}

}  // namespace
}  // namespace fcp
