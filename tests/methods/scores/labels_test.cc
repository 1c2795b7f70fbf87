// lac, aps, raps and saps by hand, and what all scores of labels do with logits, labels and radii.

#include "fcp/methods/scores/labels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/aps.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"

namespace fcp {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> scores_of_row(const ScoreOptions& options, const torch::Tensor& row) {
  const auto score = make_score(options, logits_as_features(row.numel()));
  const torch::Tensor all = all_label_scores(*score, row.unsqueeze(0));
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

auto near(double a, double b, double c) {
  return ElementsAre(DoubleNear(a, 1e-7), DoubleNear(b, 1e-7), DoubleNear(c, 1e-7));
}

const torch::Tensor kLogits = torch::tensor({0.3f, 0.5f, 0.2f}).log();  // p = 0.3, 0.5, 0.2

TEST(Labels, LacByHand) {
  EXPECT_THAT(scores_of_row(LacOptions{.allow_empty = true}, kLogits), near(0.7, 0.5, 0.8));
  // Temperature 1/2 squares the odds: 9, 25, 4 of 38.
  EXPECT_THAT(scores_of_row(LacOptions{.temperature = 0.5, .allow_empty = true}, kLogits),
              near(29.0 / 38, 13.0 / 38, 34.0 / 38));
}

// A truth that is none of the classes is infinitely strange, one that is NaN has no score, and
// other numbers are no labels.
TEST(Labels, TruthsOfNoClass) {
  const float infinity = std::numeric_limits<float>::infinity();
  const torch::Tensor features = kLogits.unsqueeze(0).repeat({3, 1});
  for (const std::string name : {"lac", "aps", "raps", "saps", "feature_margin"}) {
    const auto score = make_score(ScoreOptions(name), logits_as_features(3));
    const std::vector<double> scores =
        score->score(features, torch::tensor({{1.0f}, {infinity}, {std::nanf("")}}));
    EXPECT_TRUE(std::isfinite(scores[0])) << name;
    EXPECT_EQ(scores[1], infinity) << name;
    EXPECT_TRUE(std::isnan(scores[2])) << name;
    EXPECT_THROW(score->score(features, torch::tensor({{1.0f}, {-infinity}, {0.0f}})), Error);
    EXPECT_THROW(score->score(features, torch::tensor({{1.0f}, {3.0f}, {0.0f}})), Error);
  }
}

TEST(Labels, ApsByHand) {
  EXPECT_THAT(scores_of_row(ApsOptions{.randomized = false, .allow_empty = true}, kLogits),
              near(0.8, 0.5, 1.0));
  const double u = random_shares(kLogits.unsqueeze(0), 7).item<double>();
  EXPECT_THAT(scores_of_row(ScoreOptions(ApsOptions{.allow_empty = true}, {.seed = 7}), kLogits),
              near(0.5 + 0.3 * u, 0.5 * u, 0.8 + 0.2 * u));
}

TEST(Labels, RapsByHand) {
  ScoreOptions options =
      RapsOptions{.randomized = false, .rank_weight = 0.1, .rank_free = 1, .allow_empty = true};
  EXPECT_THAT(scores_of_row(options, kLogits), near(0.9, 0.5, 1.2));
  options.set(field::rank_free, 0);
  EXPECT_THAT(scores_of_row(options, kLogits), near(1.0, 0.6, 1.3));
  options.set(field::randomized, true);
  const double u = random_shares(kLogits.unsqueeze(0), 0).item<double>();
  EXPECT_THAT(scores_of_row(options, kLogits), near(0.7 + 0.3 * u, 0.1 + 0.5 * u, 1.1 + 0.2 * u));
}

// The largest probability is 0.5, and the ranks of the labels are 2, 1 and 3.
TEST(Labels, SapsByHand) {
  ScoreOptions options = SapsOptions{.randomized = false, .rank_weight = 0.1, .allow_empty = true};
  EXPECT_THAT(scores_of_row(options, kLogits), near(0.6, 0.5, 0.7));
  options.set(field::randomized, true);
  const double u = random_shares(kLogits.unsqueeze(0), 0).item<double>();
  EXPECT_THAT(scores_of_row(options, kLogits), near(0.5 + 0.1 * u, 0.5 * u, 0.5 + 0.1 * (1 + u)));
  options.set(field::allow_empty, false);
  EXPECT_THAT(scores_of_row(options, kLogits), near(0.5 + 0.1 * u, 0, 0.5 + 0.1 * (1 + u)));
}

// As written: sort, add up, and pick.
TEST(Labels, ApsIsTheSumOfSortedProbabilities) {
  constexpr int64_t kClasses = 100;
  Random random(11);
  const torch::Tensor logits = (random_normal(random, {30, kClasses}) * 6).round() / 2;  // ties
  const torch::Tensor order = std::get<1>(torch::sort(logits, /*stable=*/true, 1, true));
  const torch::Tensor sorted = torch::softmax(logits.to(torch::kDouble), 1).gather(1, order);
  const torch::Tensor ranks = torch::arange(1, kClasses + 1, torch::kDouble);
  for (const bool randomized : {false, true}) {
    const ScoreOptions options = RapsOptions{
        .randomized = randomized, .rank_weight = 0.02, .rank_free = 3, .allow_empty = true};
    const torch::Tensor share =
        randomized ? random_shares(logits, options.seed) : torch::ones({30, 1}, torch::kDouble);
    const torch::Tensor expected = sorted.cumsum(1) - (1 - share) * sorted +
                                   options.value(field::rank_weight) * (ranks - 3).clamp_min(0);
    const auto score = make_score(options, logits_as_features(kClasses));
    const torch::Tensor found = all_label_scores(*score, logits).gather(1, order);
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-13);
  }
}

TEST(Labels, RandomSharesAreThoseOfEachRowAlone) {
  Random random(12);
  const torch::Tensor features = random_normal(random, {11, 7});  // not a multiple of four rows
  const torch::Tensor all = random_shares(features, 5);
  for (int64_t row = 0; row < features.size(0); ++row) {
    const torch::Tensor alone = random_shares(features.narrow(0, row, 1), 5);
    EXPECT_EQ(all[row].item<double>(), alone.item<double>()) << row;
  }
}

TEST(Labels, OfEqualLogitsTheLowerLabelComesFirst) {
  const torch::Tensor tied = torch::tensor({0.25f, 0.5f, 0.25f}).log();
  EXPECT_THAT(scores_of_row(ApsOptions{.randomized = false, .allow_empty = true}, tied),
              near(0.75, 0.5, 1));
  const torch::Tensor ranks = label_ranks(torch::tensor({{1.f, 3.f, 1.f, 3.f, 2.f}}));
  EXPECT_TRUE(torch::equal(ranks, torch::tensor({{4, 1, 5, 2, 3}}, torch::kLong)));
}

// With labels drawn from the network's own probabilities the randomised score is uniform on [0, 1),
// so that sets of radius 1 − α cover 1 − α exactly. Kolmogorov and Smirnov's distance of n scores
// exceeds the limit with a chance of at most 1e-6 (Massart).
TEST(Labels, RandomisedApsIsExactWhereTheProbabilitiesAreTrue) {
  constexpr int64_t kRows = 20000;
  Random random(3);
  const torch::Tensor logits = random_normal(random, {kRows, 5}) * 2;
  const torch::Tensor truth = drawn_labels(random, logits);
  const double limit = std::sqrt(std::log(2e6) / (2.0 * kRows));
  for (const bool randomized : {true, false}) {
    const ScoreOptions options = ApsOptions{.randomized = randomized, .allow_empty = true};
    std::vector<double> scores = make_score(options, logits_as_features(5))->score(logits, truth);
    std::sort(scores.begin(), scores.end());
    double distance = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      distance = std::max({distance, std::abs(scores[i] - static_cast<double>(i) / kRows),
                           std::abs(scores[i] - static_cast<double>(i + 1) / kRows)});
    }
    EXPECT_EQ(distance < limit, randomized) << distance;
  }
}

TEST(Labels, TheRandomShareDependsOnTheFeatureAndTheSeedAlone) {
  Random random(4);
  const torch::Tensor features = random_normal(random, {50, 8});
  const torch::Tensor shares = random_shares(features, 1);
  const torch::Tensor order = torch::randperm(50);
  EXPECT_TRUE(torch::equal(random_shares(features.index_select(0, order), 1),
                           shares.index_select(0, order)));
  EXPECT_FALSE(random_shares(features, 2).eq(shares).any().item<bool>());
  torch::Tensor other = features.clone();
  other.select(1, 7) += 1;
  EXPECT_FALSE(random_shares(other, 1).eq(shares).any().item<bool>());
}

TEST(Labels, ASoftmaxAtTheEndIsTakenOff) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    Graph graph = linear_head(torch::eye(3), torch::zeros({3}));
    graph.nodes.push_back(make_node(op, {"y"}, {"p"}, {{"axis", int64_t{1}}}));
    graph.outputs = {make_info("p", {kDynamic, 3})};
    const auto score =
        make_score(LacOptions{.temperature = 0.5, .allow_empty = true}, network_of(graph));
    const torch::Tensor scores = all_label_scores(*score, kLogits.unsqueeze(0));
    EXPECT_NEAR(scores[0][1].item<double>(), 13.0 / 38, 1e-7) << op;
  }
}

TEST(Labels, PredictionIsTheNetworksAnswerAndSizesFollowTheRadius) {
  const auto score = make_score(LacOptions{.allow_empty = true}, logits_as_features(3));
  const Regions regions = score->region(kLogits.unsqueeze(0), 0.7000001);
  EXPECT_EQ(score->classes(), 3);
  EXPECT_TRUE(torch::equal(regions.prediction, torch::tensor({{1}}, torch::kLong)));
  EXPECT_TRUE(torch::equal(regions.members, torch::tensor({{true, true, false}})));
  EXPECT_FALSE(regions.lower.defined());
  const torch::Tensor radii = torch::tensor({{0.0, 0.5000001, 0.9}}, torch::kDouble);
  EXPECT_TRUE(torch::equal(score->region(kLogits.unsqueeze(0), radii).members,
                           torch::tensor({{false, true, true}})));
}

// The answer has the score 0 and all others theirs, so that no radius of a calibration leaves a set
// empty, whatever else was asked for.
TEST(Labels, TheAnswerIsInEverySet) {
  Random random(21);
  const torch::Tensor rows = random_normal(random, {40, 5}) * 3;
  const torch::Tensor answers = answers_of(rows);
  int empty = 0;
  for (ScoreOptions options : std::vector<ScoreOptions>{
           LacOptions{}, ApsOptions{}, RapsOptions{.rank_weight = 0.3},
           SapsOptions{.rank_weight = 0.3}, FeatureMarginOptions{.rank_weight = 0.3}}) {
    const auto score = make_score(options, logits_as_features(5));
    options.set(field::allow_empty, true);
    const auto pure = make_score(options, logits_as_features(5));
    const torch::Tensor all = all_label_scores(*score, rows);
    EXPECT_TRUE(torch::equal(all, all_label_scores(*pure, rows).scatter(1, answers, 0.0)))
        << options.name();
    for (const double radius : {0.0, 1e-300, 0.2, 0.7}) {
      const torch::Tensor members = score->region(rows, radius).members;
      EXPECT_TRUE(members.gather(1, answers).all().item<bool>()) << options.name() << radius;
      const torch::Tensor each = torch::full({40, 5}, radius, torch::kDouble);
      EXPECT_TRUE(torch::equal(members, score->region(rows, each).members)) << options.name();
      const torch::Tensor plain = pure->region(rows, radius).members;
      EXPECT_TRUE(torch::equal(members, plain.scatter(1, answers, true))) << options.name();
      empty += static_cast<int>(plain.any(1).logical_not().sum().item<int64_t>());
    }
  }
  EXPECT_GT(empty, 100);
}

TEST(Labels, AnAnswerThatIsNoNumberIsNoLabel) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor rows = torch::tensor({{0.f, 1.f, 2.f}, {nan, 1.f, 2.f}, {5.f, 1.f, 2.f}});
  EXPECT_TRUE(torch::equal(answers_of(rows), torch::tensor({{2}, {-1}, {0}}, torch::kLong)));
  for (const char* name : {"lac", "aps", "raps", "saps", "feature_margin", "feature_sampled"}) {
    ScoreOptions options(name);
    if (int* steps = options.find(field::steps)) *steps = 1;
    const auto score = make_score(options, logits_as_features(3));
    EXPECT_TRUE(torch::equal(score->region(rows, 0.5).prediction, answers_of(rows))) << name;
  }
}

TEST(Labels, WrongInputIsNamed) {
  const auto score = make_score(LacOptions{}, logits_as_features(3));
  const torch::Tensor rows = torch::zeros({2, 3});
  const auto message = [&](const std::function<void()>& work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([&] {
                score->score(rows, torch::tensor({{0.0}, {3.0}}));
              }),
              HasSubstr("row 1: found label 3, expected one of 0 to 2"));
  EXPECT_THAT(message([&] {
                score->score(rows, torch::tensor({{0.0}, {0.5}}));
              }),
              HasSubstr("row 1: found label 0.5"));
  EXPECT_THAT(message([&] { score->score(rows, torch::zeros({2, 2})); }), HasSubstr("one label"));
  EXPECT_THAT(message([&] { score->region(rows, torch::zeros({2, 2})); }), HasSubstr("radius"));
  const auto hot = make_score(LacOptions{.temperature = 0}, logits_as_features(3));
  EXPECT_THAT(message([&] { hot->score(rows, torch::zeros({2, 1})); }), HasSubstr("temperature"));
  EXPECT_THAT(message([&] { make_score(RapsOptions{.rank_weight = -1}, logits_as_features(3)); }),
              HasSubstr("at least 0"));
}

TEST(Labels, NanGivesNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* name : {"lac", "aps", "raps", "saps", "feature_margin"}) {
    const auto score = make_score(ScoreOptions(name), logits_as_features(3));
    torch::Tensor rows = torch::zeros({3, 3});
    rows[1][2] = nan;
    const std::vector<double> scores = score->score(rows, torch::tensor({{0.0}, {0.0}, {nan}}));
    EXPECT_FALSE(std::isnan(scores[0])) << name;
    EXPECT_TRUE(std::isnan(scores[1])) << name;
    EXPECT_TRUE(std::isnan(scores[2])) << name;
  }
}

}  // namespace
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<long double> slow_softmax(const std::vector<float>& logits, double temperature) {
  long double largest = -kInfinite, sum = 0;
  for (const float logit : logits) {
    largest = std::max(largest, static_cast<long double>(logit) / temperature);
  }
  std::vector<long double> shares;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<long double>(logit) / temperature - largest));
    sum += shares.back();
  }
  for (long double& share : shares) share /= sum;
  return shares;
}

TEST(SoftmaxRow, IsThatOfLongDoublesToAFewUnits) {
  Random random(1);
  for (size_t classes = 1; classes < 40; ++classes) {
    for (const double temperature : {1.0, 0.7, 30.0}) {
      std::vector<float> logits(classes);
      for (float& logit : logits) logit = static_cast<float>(8 * random.normal());
      std::vector<double> shares(classes);
      ASSERT_TRUE(softmax_row(logits, temperature, shares.data()));
      const std::vector<long double> expected = slow_softmax(logits, temperature);
      const double largest = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (size_t k = 0; k < classes; ++k) {
        // z / T, m and their difference are rounded to half a unit each, by which the exponential
        // is wrong in proportion to their sizes; exponential, sum and quotient add a few units.
        const double slack =
            0x1p-52 * (6 + std::abs(logits[k]) / temperature + std::abs(largest) / temperature);
        EXPECT_NEAR(shares[k] / static_cast<double>(expected[k]), 1, slack) << classes << ' ' << k;
        sum += shares[k];
      }
      EXPECT_NEAR(sum, 1, 1e-14);
    }
  }
}

TEST(SoftmaxRow, EqualLogitsHaveEqualShares) {
  for (const size_t classes : {1u, 3u, 17u}) {
    const std::vector<float> logits(classes, 2.5f);
    std::vector<double> shares(classes);
    ASSERT_TRUE(softmax_row(logits, 1, shares.data()));
    for (const double share : shares) EXPECT_EQ(share, 1.0 / static_cast<double>(classes));
  }
}

TEST(SoftmaxRow, FarOutAndNotNumbers) {
  std::vector<double> shares(5);
  ASSERT_TRUE(softmax_row(std::vector<float>{0, -kInfinite, 3e38f, -3e38f, 0}, 1, shares.data()));
  EXPECT_EQ(shares, (std::vector<double>{0, 0, 1, 0, 0}));
  for (const float wrong : {kNan, kInfinite}) {
    for (size_t place = 0; place < 5; ++place) {
      std::vector<float> logits = {1, 2, 3, 2, 1};
      logits[place] = wrong;
      EXPECT_FALSE(softmax_row(logits, 1, shares.data())) << wrong << ' ' << place;
    }
  }
  EXPECT_FALSE(softmax_row(std::vector<float>(5, -kInfinite), 1, shares.data()));
}

TEST(SoftmaxRow, FirstLargest) {
  Random random(2);
  for (size_t classes = 1; classes < 30; ++classes) {
    std::vector<float> logits(classes);
    for (float& logit : logits) logit = static_cast<float>(random.below(5));
    const auto largest = std::max_element(logits.begin(), logits.end());
    EXPECT_EQ(first_largest(logits), largest - logits.begin());
  }
}

}  // namespace
}  // namespace fcp
