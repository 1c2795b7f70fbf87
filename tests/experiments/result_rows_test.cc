#include "apps/experiments/result_rows.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

Json sample_rows() {
  return Json::parse(R"([
    {"set": "a", "method": "m", "length": 1, "seconds": 0.5},
    {"set": "a", "method": "m", "length": 3, "note": "x, \"y\"", "seconds": 0.25},
    {"set": "a", "method": "m", "failed": "no M"},
    {"set": "b", "method": "m", "length": "inf"}])");
}

TEST(ResultRows, NumbersAndTexts) {
  const Json rows = sample_rows();
  EXPECT_EQ(number_of(rows[0], "length"), 1);
  EXPECT_EQ(number_of(rows[3], "length"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(number_of(rows[2], "length")));
  EXPECT_EQ(text_of(rows[0], "length"), "1");
  EXPECT_EQ(text_of(rows[0], "absent"), "");
}

TEST(ResultRows, GroupsAverageWhatDidNotFail) {
  const Json rows = sample_rows();
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].key, testing::ElementsAre("a", "m"));
  EXPECT_EQ(groups[0].failed, 1u);
  EXPECT_EQ(groups[0].failed_text(), "1 of 3: no M");
  const Spread spread = groups[0].spread("length");
  EXPECT_EQ(spread.count, 2u);
  EXPECT_DOUBLE_EQ(spread.mean, 2);
  EXPECT_DOUBLE_EQ(spread.deviation, std::sqrt(2.0));
  EXPECT_EQ(spread_text(spread, 2), "2.00 ± 1.41");
  EXPECT_EQ(spread_text(groups[1].spread("length")), "∞");
  EXPECT_EQ(spread_text(spread_at(groups, {"c", "m"}, "length")), "–");
  EXPECT_EQ(percent_text(spread_of(std::vector<double>{0.903})), "90.3");
  EXPECT_THAT(values_of(rows, "set"), testing::ElementsAre("a", "b"));
}

TEST(ResultRows, FixedNumbers) {
  EXPECT_EQ(fixed_text(-1.005, 1), "−1.0");
  EXPECT_EQ(fixed_text(2.5, 3), "2.500");
  EXPECT_EQ(fixed_text(std::nan(""), 3), "–");
}

TEST(ResultRows, CsvHasEveryFieldButTheSeconds) {
  EXPECT_EQ(rows_csv(sample_rows()),
            "set,method,length,note,failed\n"
            "a,m,1,,\n"
            "a,m,3,\"x, \"\"y\"\"\",\n"
            "a,m,,,no M\n"
            "b,m,inf,,\n");
}

}  // namespace
}  // namespace fcp
