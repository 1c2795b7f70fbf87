#include "fcp/evaluate/measures/class_skill.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/random.h"

namespace fcp {
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
}  // namespace fcp
