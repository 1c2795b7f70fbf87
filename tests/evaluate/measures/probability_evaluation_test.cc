#include "fcp/evaluate/measures/probability_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

TEST(Probabilities, FiguresByHand) {
  ProbabilityEvaluator two, three;
  two.add(judge_probabilities(std::vector<double>{0.75, 0.25}, 0));
  two.add(judge_probabilities(std::vector<double>{0.75, 0.25}, 1));
  two.add(judge_probabilities(std::vector<double>{0.0, 1.0}, 1));
  EXPECT_DOUBLE_EQ(two.figures().log_loss, -(std::log(0.75) + std::log(0.25)) / 3);
  EXPECT_DOUBLE_EQ(two.figures().brier, (0.0625 + 0.5625) / 3);
  EXPECT_DOUBLE_EQ(two.figures().ece, (0.5 / 3));  // 0.25 twice, of which one came
  const std::vector<ReliabilityBin> bins = two.reliability();
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_EQ(bins[0].rows, 2u);
  EXPECT_DOUBLE_EQ(bins[0].from, 0.2);
  EXPECT_DOUBLE_EQ(bins[0].predicted, 0.25);
  EXPECT_DOUBLE_EQ(bins[0].observed, 0.5);
  EXPECT_DOUBLE_EQ(bins[0].low, 0);
  EXPECT_NEAR(bins[0].high, 0.25 + 1.96 * std::sqrt(0.1875 / 2), 1e-12);
  EXPECT_DOUBLE_EQ(bins[1].to, 1);
  // Of three classes: the most probable label, and the sum over classes.
  const JudgedProbabilities row = judge_probabilities(std::vector<double>{0.2, 0.5, 0.3}, 2);
  EXPECT_EQ(row.event_class, 1u);
  EXPECT_EQ(row.happened, 0);
  EXPECT_DOUBLE_EQ(row.predicted, 0.5);
  EXPECT_DOUBLE_EQ(row.brier, 0.04 + 0.25 + 0.49);
  three.add(row);
  EXPECT_DOUBLE_EQ(three.figures().ece, 0.5);
}

TEST(Probabilities, ImpossibleTruthsCostMuchButNotEverything) {
  const JudgedProbabilities row = judge_probabilities(std::vector<double>{1, 0}, 1);
  EXPECT_NEAR(row.log_loss, 34.5, 0.1);
  EXPECT_THROW(judge_probabilities(std::vector<double>{1}, 0), Error);
  EXPECT_THROW(judge_probabilities(std::vector<double>{0.5, 0.5}, 2), Error);
  EXPECT_THROW(ProbabilityEvaluator().figures(), Error);
  EXPECT_THROW(ProbabilityEvaluator().add({.predicted = std::nan("")}), Error);
}

// 20,000 rows whose probabilities are right: each of ten bins has about 2,000, whose share is
// farther than 0.07 from its mean with a chance below 1e-6 by Hoeffding (ten times
// 2 exp(−2 · 1,800 · 0.0049)).
TEST(Probabilities, RightOnesAreReliable) {
  Random random(5);
  ProbabilityEvaluator right, bold;
  for (int i = 0; i < 20000; ++i) {
    const double p = random.uniform();
    const size_t label = random.uniform() < p ? 1 : 0;
    right.add(judge_probabilities(std::vector<double>{1 - p, p}, label));
    const double more = p * p / (p * p + (1 - p) * (1 - p));
    bold.add(judge_probabilities(std::vector<double>{1 - more, more}, label));
  }
  for (const ReliabilityBin& bin : right.reliability()) {
    EXPECT_NEAR(bin.observed, bin.predicted, 0.07);
  }
  EXPECT_LT(right.figures().ece, 0.07);
  EXPECT_GT(bold.figures().ece, 0.07);
  EXPECT_LT(right.figures().log_loss, bold.figures().log_loss);
  EXPECT_LT(right.figures().brier, bold.figures().brier);
}

}  // namespace
namespace {

struct SkillTable {
  size_t classes;
  std::vector<std::vector<float>> logs;
  std::vector<size_t> labels;
};

// Probabilities with many equal ones.
SkillTable random_skill(uint64_t seed, size_t rows, size_t classes) {
  Random random(seed);
  SkillTable table{.classes = classes, .logs = {}, .labels = {}};
  for (size_t i = 0; i < rows; ++i) {
    table.labels.push_back(random.below(classes));
    std::vector<double> odds(classes);
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      odds[c] = static_cast<double>(1 + random.below(4)) + (c == table.labels[i] ? 1.0 : 0.0);
      sum += odds[c];
    }
    table.logs.emplace_back();
    for (const double odd : odds)
      table.logs.back().push_back(static_cast<float>(std::log(odd / sum)));
  }
  return table;
}

TEST(ClassSkill, EqualsTheSlowVersion) {
  const SkillTable table = random_skill(4, 150, 3);
  ClassSkill skill(3);
  double loss = 0;
  for (size_t i = 0; i < table.labels.size(); ++i) {
    skill.add(table.logs[i], table.labels[i]);
    loss -= static_cast<double>(table.logs[i][table.labels[i]]) / 150;
  }
  EXPECT_NEAR(skill.log_loss().value(), loss, 1e-12);
  for (size_t c = 0; c < 3; ++c) {
    double wins = 0, pairs = 0;
    for (size_t i = 0; i < table.labels.size(); ++i) {
      for (size_t j = 0; j < table.labels.size(); ++j) {
        if (table.labels[i] != c || table.labels[j] == c) continue;
        const float own = table.logs[i][c], other = table.logs[j][c];
        wins += own > other ? 1 : own == other ? 0.5 : 0;
        ++pairs;
      }
    }
    EXPECT_NEAR(skill.auc(c).value(), wins / pairs, 1e-12);
    EXPECT_GT(skill.auc(c).value(), 0.55);
  }
}

TEST(ClassSkill, SaysNothingWhereNothingCanBeSaid) {
  ClassSkill skill(3);
  EXPECT_FALSE(skill.log_loss());
  const float none = -std::numeric_limits<float>::infinity();
  skill.add(std::vector<float>{0, none, none}, 1);
  EXPECT_NEAR(skill.log_loss().value(), -std::log(1e-15), 1e-9) << "p is at least 1e-15";
  EXPECT_FALSE(skill.auc(1)) << "all rows are of it";
  EXPECT_FALSE(skill.auc(0)) << "no row is of it";
  skill.add(std::vector<float>{-1, -1, -1}, 0);
  EXPECT_EQ(skill.auc(1).value(), 0);
  EXPECT_EQ(skill.auc(0).value(), 0);
}

}  // namespace
namespace {

// The integral, as a sum over a fine grid, of the step function through the quantiles.
double slow_crps(const std::vector<double>& quantiles, double truth) {
  double sum = 0;
  constexpr double kStep = 1e-3;
  for (double t = -10; t < 10; t += kStep) {
    double below = 0;
    for (const double q : quantiles)
      below += q <= t ? 1 / static_cast<double>(quantiles.size()) : 0;
    const double off = below - (truth <= t ? 1 : 0);
    sum += off * off * kStep;
  }
  return sum;
}

TEST(Crps, IsTheAreaBetweenTheDistributionAndTheTruth) {
  const std::vector<double> one = {2};
  EXPECT_DOUBLE_EQ(crps_of_quantiles(one, 5), 3);  // a point: the absolute error
  std::vector<double> many;
  for (int i = 0; i < 999; ++i) many.push_back(-1 + 2 * (i + 1) / 1000.0);  // uniform on [-1, 1]
  for (const double truth : {-3.0, -0.5, 0.0, 0.25, 2.0}) {
    EXPECT_NEAR(crps_of_quantiles(many, truth), slow_crps(many, truth), 5e-3) << truth;
  }
  EXPECT_NEAR(crps_of_quantiles(many, 0), 1.0 / 6, 1e-3);
  const std::vector<double> open = {0, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(crps_of_quantiles(open, 1), std::numeric_limits<double>::infinity());
}

TEST(DistributionEvaluator, CountsPlacesAndThresholds) {
  DistributionEvaluator evaluator(3);
  const std::vector<double> quantiles = {1, 2, 3};
  for (const auto& [truth, place] : {std::pair(0.0, 0.05), {1.5, 0.35}, {2.5, 0.65}, {9.0, 1.0}}) {
    evaluator.add(quantiles, truth, place);
  }
  const DistributionEvaluation found = evaluator.finish(99);
  EXPECT_EQ(found.rows, 4U);
  EXPECT_THAT(found.pit, testing::ElementsAre(1, 0, 0, 1, 0, 0, 1, 0, 0, 1));
  ASSERT_EQ(found.thresholds.size(), 3U);
  EXPECT_EQ(found.thresholds[1].threshold, 1.5);
  EXPECT_EQ(found.thresholds[1].observed, 0.5);
  EXPECT_EQ(found.thresholds[1].predicted, 2.5 / 4);
  EXPECT_THROW(evaluator.add(quantiles, 0, 1.5), Error);
  EXPECT_THROW(DistributionEvaluator(3).finish(9), Error);
}

// 3,000 experiments of 200 calibration and 300 fresh rows: a bin is outside the band about one time
// in twenty; by Hoeffding the share is within 0.048 of its mean but with a chance below 1e-6.
TEST(DistributionEvaluator, TheBandHoldsNineteenOfTwentyCounts) {
  Random random(5);
  size_t outside = 0;
  constexpr int kExperiments = 3000;
  for (int experiment = 0; experiment < kExperiments; ++experiment) {
    std::vector<double> scores(200);
    for (double& score : scores) score = random.uniform();
    std::sort(scores.begin(), scores.end());
    DistributionEvaluator evaluator(1);
    const double quantile = 0.5;
    for (int row = 0; row < 300; ++row) {
      const double truth = random.uniform();
      const auto below = std::lower_bound(scores.begin(), scores.end(), truth) - scores.begin();
      evaluator.add({&quantile, 1}, truth, (static_cast<double>(below) + random.uniform()) / 201);
    }
    const DistributionEvaluation found = evaluator.finish(200);
    const auto count = static_cast<double>(found.pit[3]);
    outside += count < found.pit_low || count > found.pit_high;
  }
  EXPECT_NEAR(static_cast<double>(outside) / kExperiments, 0.05, 0.05);
}

}  // namespace
}  // namespace fcp
