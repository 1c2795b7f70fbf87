#include "fcp/monitoring/drift.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/monitoring/streams.h"

namespace fcp {
namespace {

std::vector<size_t> first_columns(size_t count) {
  std::vector<size_t> columns(count);
  for (size_t i = 0; i < count; ++i) columns[i] = i;
  return columns;
}

// Three columns: one of numbers with gaps, one constant, one of few categories.
std::vector<float> plain_row(Random& random) {
  const float gap = std::numeric_limits<float>::quiet_NaN();
  return {random.below(10) == 0 ? gap : static_cast<float>(random.normal()), 1.0f,
          static_cast<float>(random.below(3))};
}

// 2,000 streams, at most 10 % alarms; fails by chance with probability at most 1e-6.
TEST(Drift, RaisesFalseAlarmsNoMoreOftenThanItSays) {
  constexpr size_t kStreams = 2000;
  size_t alarms = 0;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    Random random(stream);
    Drift drift(3, first_columns(3), {"a", "b", "c"}, stream);
    for (int i = 0; i < 50; ++i) drift.add_reference(plain_row(random));
    CapitalWatch watch(0.1);
    for (size_t t = 0; t < 200; ++t) {
      drift.step(plain_row(random));
      watch.see(t, drift.log_capital());
    }
    alarms += watch.crossed() ? 1 : 0;
  }
  EXPECT_LE(alarms, most_alarms(kStreams, 0.1));
}

TEST(Drift, NamesTheColumnThatDrifts) {
  for (const size_t changed : {0u, 1u, 2u}) {
    Random random(changed);
    Drift drift(3, first_columns(3), {"a", "b", "c"}, 1);
    CapitalWatch watch(0.001);
    size_t t = 0;
    for (; t < 3000 && !watch.crossed(); ++t) {
      std::vector<float> row = plain_row(random);
      if (t >= 1000) row[changed] += 2;
      drift.step(row);
      watch.see(t, drift.log_capital());
    }
    EXPECT_GT(t, 1000u);
    EXPECT_LT(t, 1200u) << "column " << changed;
    EXPECT_EQ(drift.strangest(), std::vector<std::string>({"a", "b", "c"})[changed]);
  }
}

TEST(Drift, WatchesManyColumnsThroughSums) {
  Random random(5);
  Drift drift(500, first_columns(500), {}, 1);
  EXPECT_EQ(drift.names().size(), 32u);
  CapitalWatch watch(0.001);
  size_t t = 0;
  for (; t < 2000 && !watch.crossed(); ++t) {
    std::vector<float> row(500);
    for (float& value : row) {
      value = static_cast<float>(random.normal() * (t < 300 ? 1 : 2));
    }
    drift.step(row);
    watch.see(t, drift.log_capital());
  }
  EXPECT_GT(t, 300u);
  EXPECT_LT(t, 700u);
}

TEST(Drift, RefusesRowsThatDoNotFit) {
  EXPECT_THROW(Drift(2, {2}, {}, 0), Error);
  Drift drift(2, {1}, {}, 0);
  EXPECT_EQ(drift.names().at(0), "column 1");
  EXPECT_THROW(drift.step(std::vector<float>{1}), Error);
}

}  // namespace
}  // namespace fcp
