#include "fcp/calibrate/label_options.h"

#include <algorithm>

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
namespace {

double term_mean_size(const ScoreOptions& options, const std::shared_ptr<const Network>& head,
                      const LabelledFeatures& rows, const Level& level) {
  const auto score = make_score(options, head);
  const double radius = conformal_quantile(score->score(rows.features, rows.labels), level);
  return score->region(rows.features, radius)
      .members.sum(1)
      .to(torch::kDouble)
      .mean()
      .item<double>();
}

// Many labels of little probability: a rank term pays. On rows that the choice has not seen the
// sets are hardly larger than those of any term on the grid, chosen by these rows themselves.
TEST(RankTerm, GivesSetsNearTheSmallestOfTheGridOnOtherRows) {
  Random random(2);
  const auto draw = [&](int64_t rows) {
    const torch::Tensor logits = random_normal(random, {rows, 40}) * 1.5;
    return LabelledFeatures{logits, drawn_labels(random, logits * 1.2)};
  };
  const LabelledFeatures rows = draw(600), others = draw(4000);
  const auto head = logits_as_features(40);
  const Level level(0.2);
  for (const bool randomized : {false, true}) {
    for (const char* name : {"raps", "saps"}) {
      ScoreOptions plain(name);
      plain.set(field::randomized, randomized);
      const ScoreOptions chosen = choose_rank_term(plain, head, rows, level);
      double least = 1000;
      for (const double weight : {0.003, 0.01, 0.03, 0.1, 0.5}) {
        ScoreOptions one = plain;
        one.set(field::rank_weight, weight);
        for (const int64_t ranks : {1, 5, 13}) {
          if (int64_t* free = one.find(field::rank_free)) *free = ranks;
          least = std::min(least, term_mean_size(one, head, others, level));
        }
      }
      EXPECT_LT(term_mean_size(chosen, head, others, level), 1.05 * least) << name << randomized;
    }
  }
}

TEST(RankTerm, OfMarginsGivesTheSmallestSetsOfTheRowsThemselves) {
  Random random(3);
  const torch::Tensor logits = random_normal(random, {600, 40}) * 1.5;
  const LabelledFeatures rows{logits, drawn_labels(random, logits * 1.2)};
  const auto head = logits_as_features(40);
  const Level level(0.2);
  const ScoreOptions plain = FeatureMarginOptions{};
  const ScoreOptions chosen = choose_rank_term(plain, head, rows, level);
  const double size = term_mean_size(chosen, head, rows, level);
  EXPECT_LE(size, term_mean_size(plain, head, rows, level));
  ScoreOptions other = chosen;
  for (const double factor : {0.5, 2.0}) {  // neighbours on the grid
    other.set(field::rank_weight, chosen.value(field::rank_weight) * factor);
    EXPECT_LE(size, term_mean_size(other, head, rows, level)) << factor;
  }
}

// Ranks 1, …, 10 of the truth equally often: at α = 0.2 no more than nine ranks are free.
TEST(RankTerm, RankOfTheTruthBoundsHowManyRanksAreFree) {
  const torch::Tensor logits = -torch::arange(10, torch::kFloat).expand({10, 10});
  const LabelledFeatures rows{logits.contiguous(), torch::arange(10).unsqueeze(1)};
  for (const ScoreOptions& score :
       {ScoreOptions(RapsOptions{.randomized = false}), ScoreOptions(FeatureMarginOptions{})}) {
    const ScoreOptions chosen = choose_rank_term(score, logits_as_features(10), rows, Level(0.2));
    EXPECT_GE(chosen.value(field::rank_free), 1) << score.name();
    EXPECT_LE(chosen.value(field::rank_free), 9) << score.name();
  }
  EXPECT_THROW(choose_rank_term(LacOptions{}, logits_as_features(10), rows, Level(0.2)), Error);
}

// Logits that are as true as they can be, of which many are small: a lower temperature gives
// smaller sets, and is taken on request alone.
TEST(RankTerm, CoolerTemperaturesAreTriedOnRequest) {
  Random random(5);
  const torch::Tensor logits = random_normal(random, {1000, 200}) * 2;
  const LabelledFeatures rows{logits, drawn_labels(random, logits)};
  const auto head = logits_as_features(200);
  const Level level(0.1);
  const ScoreOptions plain = RapsOptions{.allow_empty = true};
  const ScoreOptions as_given = choose_rank_term(plain, head, rows, level);
  EXPECT_EQ(as_given.value(field::temperature), 1);
  const ScoreOptions cooler = choose_rank_term(plain, head, rows, level, /*cooler=*/true);
  EXPECT_LT(cooler.value(field::temperature), 1);
  EXPECT_LE(term_mean_size(cooler, head, rows, level),
            1.02 * term_mean_size(as_given, head, rows, level));
}

// Same rows, same choice; and rows too few for halves choose by themselves.
TEST(RankTerm, IsDeterministicAndTakesFewRows) {
  Random random(6);
  const torch::Tensor logits = random_normal(random, {12, 30});
  const LabelledFeatures rows{logits, drawn_labels(random, logits)};
  const auto head = logits_as_features(30);
  const ScoreOptions one = choose_rank_term(SapsOptions{}, head, rows, Level(0.1));
  EXPECT_EQ(one, choose_rank_term(SapsOptions{}, head, rows, Level(0.1)));
  EXPECT_GT(one.value(field::rank_weight), 0);
}

}  // namespace
}  // namespace fcp
