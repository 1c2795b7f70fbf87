#include "fcp/training/boosting.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

// y jumps by 1 where x0 > 0 and by 2 where x1 is missing; x2 is noise.
BoostRows steps(int64_t rows, uint64_t seed) {
  Random random(seed);
  BoostRows made;
  made.columns = 3;
  for (int64_t i = 0; i < rows; ++i) {
    const float x0 = static_cast<float>(random.normal());
    const bool gap = random.uniform() < 0.3;
    made.x.insert(made.x.end(), {x0, gap ? kNoNumber : static_cast<float>(random.normal()),
                                 static_cast<float>(random.normal())});
    made.y.push_back((x0 > 0 ? 1.0f : 0.0f) + (gap ? 2.0f : 0.0f));
  }
  return made;
}

// What the trees answer, node by node.
double walk(const Tree& tree, const float* x) {
  size_t at = 0;
  while (tree[at].feature >= 0) {
    const float value = x[tree[at].feature];
    const bool less = std::isnan(value) ? tree[at].missing_is_less : value < tree[at].number;
    at = static_cast<size_t>(less ? tree[at].less : tree[at].other);
  }
  return tree[at].number;
}

double mean_error(const BoostRows& rows, const BoostedTrees& fitted, bool squared) {
  double sum = 0;
  for (size_t i = 0; i < rows.y.size(); ++i) {
    const double error = fitted.holdout[i] - rows.y[i];
    sum += squared ? error * error : std::abs(error);
  }
  return sum / static_cast<double>(rows.y.size());
}

class Boosting : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_boost()) GTEST_SKIP() << "built without XGBoost";
  }
};

TEST_F(Boosting, LearnsJumpsAndMissingValues) {
  const BoostRows training = steps(1500, 1), holdout = steps(500, 2);
  for (const BoostLoss loss : {BoostLoss::kSquared, BoostLoss::kAbsolute}) {
    const BoostedTrees fitted = boost(training, holdout, {.loss = loss, .rounds = 150});
    EXPECT_LT(mean_error(holdout, fitted, true), 0.01);  // the variance of y is 1.1
  }
}

TEST_F(Boosting, TreesAddUpToWhatIsSaidOfTheHoldout) {
  const BoostRows training = steps(800, 1), holdout = steps(200, 2);
  const BoostedTrees fitted = boost(training, holdout, {.rounds = 40});
  for (size_t i = 0; i < 200; ++i) {
    double sum = 0;
    for (const Tree& tree : fitted.trees) sum += walk(tree, holdout.x.data() + 3 * i);
    EXPECT_NEAR(sum, fitted.holdout[i], 1e-5);
  }
}

// y is 0 in three rows of four and 10 in the fourth, whatever x is: the mean is 2.5, the median 0.
TEST_F(Boosting, AbsoluteErrorLeadsToMedians) {
  BoostRows training = steps(2000, 1), holdout = steps(500, 2);
  for (BoostRows* rows : {&training, &holdout}) {
    for (size_t i = 0; i < rows->y.size(); ++i) rows->y[i] = i % 4 == 0 ? 10 : 0;
  }
  const BoostedTrees mean = boost(training, holdout, {.rounds = 100});
  const BoostedTrees median =
      boost(training, holdout, {.loss = BoostLoss::kAbsolute, .rounds = 100});
  EXPECT_NEAR(mean_error(holdout, mean, false), 3.75, 0.5);
  EXPECT_NEAR(mean_error(holdout, median, false), 2.5, 0.1);
}

TEST_F(Boosting, LearnsClasses) {
  for (const int64_t classes : {2, 3}) {
    BoostRows training = steps(1000, 1), holdout = steps(300, 2);
    for (BoostRows* rows : {&training, &holdout}) {
      for (float& y : rows->y) y = std::min(y, static_cast<float>(classes - 1));
    }
    const BoostedTrees fitted = boost(
        training, holdout,
        {.loss = BoostLoss::kClasses, .classes = classes, .rounds = 60, .rate = 0.2, .least = 1});
    ASSERT_EQ(fitted.outputs, classes == 2 ? 1 : 3);
    size_t right = 0;
    for (size_t i = 0; i < 300; ++i) {
      const float* logits = fitted.holdout.data() + i * static_cast<size_t>(fitted.outputs);
      const auto best =
          classes == 2 ? (logits[0] > 0 ? 1 : 0) : std::max_element(logits, logits + 3) - logits;
      right += best == static_cast<int64_t>(holdout.y[i]);
    }
    EXPECT_GT(right, 290u) << classes;
  }
}

TEST_F(Boosting, StopsWhereTheHoldoutSaysSo) {
  Random random(3);
  BoostRows training = steps(400, 1), holdout = steps(400, 2);
  for (float& y : training.y) y = static_cast<float>(random.normal());
  for (float& y : holdout.y) y = static_cast<float>(random.normal());
  const BoostedTrees fitted = boost(training, holdout, {.rounds = 500, .patience = 20});
  EXPECT_GE(fitted.trees.size(), 1u);
  EXPECT_LT(fitted.trees.size(), 100u) << "noise cannot be learned";
}

bool same_trees(const BoostedTrees& a, const BoostedTrees& b) {
  if (a.trees.size() != b.trees.size()) return false;
  for (size_t t = 0; t < a.trees.size(); ++t) {
    if (a.trees[t].size() != b.trees[t].size()) return false;
    for (size_t i = 0; i < a.trees[t].size(); ++i) {
      const TreeNode &x = a.trees[t][i], &y = b.trees[t][i];
      if (x.feature != y.feature || x.number != y.number || x.less != y.less) return false;
    }
  }
  return a.holdout == b.holdout;
}

// Alone, side by side with others, and after others on the same thread.
TEST_F(Boosting, SameSeedSameBitsWhereverItRuns) {
  const BoostRows training = steps(500, 1), holdout = steps(200, 2);
  for (const BoostLoss loss : {BoostLoss::kSquared, BoostLoss::kAbsolute}) {
    const BoostOptions options{.loss = loss, .rounds = 30, .seed = 7};
    const BoostedTrees alone = boost(training, holdout, options);
    std::vector<BoostedTrees> beside(4);
    parallel_rows(4, 1, 4, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        boost(holdout, training, {.rounds = static_cast<int64_t>(3 + i), .seed = i});
        beside[i] = boost(training, holdout, options);
      }
    });
    for (const BoostedTrees& other : beside) EXPECT_TRUE(same_trees(alone, other));
    EXPECT_FALSE(same_trees(alone, boost(training, holdout, {.loss = loss, .rounds = 30})));
  }
}

size_t threads_of_the_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(Boosting, LeavesNoThreadsBehind) {
  const size_t before = threads_of_the_process();
  boost(steps(3000, 1), steps(1000, 2), {.rounds = 20});
  boost(steps(3000, 1), steps(1000, 2), {.loss = BoostLoss::kAbsolute, .rounds = 20});
  EXPECT_EQ(threads_of_the_process(), before);
}

// A threshold on a number of the training rows would send a row either way by the last bit of a
// number that a graph computes.
TEST_F(Boosting, ThresholdsLieBetweenTheNumbersOfAGrid) {
  Random random(5);
  BoostRows training{.columns = 1}, holdout{.columns = 1};
  for (int i = 0; i < 900; ++i) {
    BoostRows& rows = i % 3 == 0 ? holdout : training;
    const float hour = static_cast<float>(random.below(24)) / 24;
    rows.x.push_back(hour);
    rows.y.push_back(std::sin(20 * hour));
  }
  const BoostedTrees fitted = boost(training, holdout, {.rounds = 60});
  size_t splits = 0;
  for (const Tree& tree : fitted.trees) {
    for (const TreeNode& node : tree) {
      if (node.feature < 0) continue;
      ++splits;
      const float place = node.number * 24;
      EXPECT_GT(std::abs(place - std::round(place)), 0.05f) << node.number;
    }
  }
  EXPECT_GT(splits, 50u);
}

TEST(BoostingWithout, IsAnError) {
  const auto try_it = [] { boost(steps(100, 1), steps(50, 2), {.rounds = 2}); };
  if (can_boost()) {
    EXPECT_NO_THROW(try_it());
  } else {
    EXPECT_THROW(try_it(), Error);
  }
}

}  // namespace
}  // namespace fcp
