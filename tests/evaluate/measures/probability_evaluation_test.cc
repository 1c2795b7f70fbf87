#include "fcp/evaluate/measures/probability_evaluation.h"

#include <cmath>
#include <vector>

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
}  // namespace fcp
