#include "fcp/evaluate/measures/interval_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"
#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/interval.h"

#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

// Winkler's: length + (2/α) · distance of y from the interval; from an empty one's farther end.
// Gneiting, Raftery, Strictly Proper Scoring Rules, JASA 2007, section 6.2.
double interval_score(const Interval& interval, double y, double alpha) {
  return interval.length() + 2 / alpha * std::max({interval.lower - y, y - interval.upper, 0.0});
}

using reference::kInfinity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Table {
  size_t rows, outputs;
  std::vector<double> lower, upper, truth, weights;
  std::vector<int64_t> groups;

  IntervalBatch all() const { return {lower, upper, truth, weights, groups}; }
  IntervalBatch part(size_t first, size_t count) const {
    const auto cut = [&](const auto& v, size_t width) {
      return std::span(v).subspan(first * width, count * width);
    };
    return {cut(lower, outputs), cut(upper, outputs), cut(truth, outputs), cut(weights, outputs),
            cut(groups, 1)};
  }
};

// Random intervals; infinite and empty ones among them if strange.
Table random_table(uint64_t seed, size_t rows, size_t outputs, bool strange) {
  Random random(seed);
  Table table{.rows = rows,
              .outputs = outputs,
              .lower = {},
              .upper = {},
              .truth = {},
              .weights = {},
              .groups = {}};
  for (size_t i = 0; i < rows * outputs; ++i) {
    const double middle = random.normal();
    const double half = 2.5 * random.uniform();
    const uint64_t kind = strange ? random.below(40) : 40;
    table.lower.push_back(kind == 0 || kind == 1 ? -kInfinity : middle - half);
    table.upper.push_back(kind == 0 || kind == 2 ? kInfinity
                          : kind < 6             ? middle - 2 * half
                                                 : middle + half);
    table.truth.push_back(random.normal());
    table.weights.push_back(random.below(3) == 0 ? 0.0 : random.uniform());
  }
  for (size_t i = 0; i < rows; ++i) {
    table.groups.push_back(static_cast<int64_t>(random.below(4)));
  }
  return table;
}

std::vector<double> lengths_of(const Table& table, size_t first, size_t step) {
  std::vector<double> lengths;
  for (size_t i = first; i < table.lower.size(); i += step) {
    const bool empty = table.lower[i] > table.upper[i];
    lengths.push_back(empty ? 0 : table.upper[i] - table.lower[i]);
  }
  return lengths;
}

// A LengthSummary from its words; empties are counted from the ends.
void expect_lengths(const LengthSummary& found, const Table& table, size_t first, size_t step) {
  std::vector<double> lengths = lengths_of(table, first, step);
  double sum = 0, finite_sum = 0, finite = 0, empty = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t at = first + i * step;
    sum += lengths[i];
    if (lengths[i] < kInfinity) finite_sum += lengths[i], ++finite;
    empty += table.lower[at] > table.upper[at];
  }
  const double n = static_cast<double>(lengths.size());
  if (sum == kInfinity) {
    EXPECT_EQ(found.mean, kInfinity);
  } else {
    EXPECT_NEAR(found.mean, sum / n, 1e-12);
  }
  EXPECT_NEAR(found.mean_finite, finite_sum / finite, 1e-12);
  EXPECT_DOUBLE_EQ(found.infinite_share, (n - finite) / n);
  EXPECT_DOUBLE_EQ(found.empty_share, empty / n);
  std::sort(lengths.begin(), lengths.end());
  const double median = (lengths[(lengths.size() - 1) / 2] + lengths[lengths.size() / 2]) / 2;
  ASSERT_TRUE(found.median.has_value());
  EXPECT_DOUBLE_EQ(*found.median, median);
}

std::vector<bool> covered_rows(const Table& table) {
  std::vector<bool> covered(table.rows, true);
  for (size_t i = 0; i < table.truth.size(); ++i) {
    const bool inside = table.lower[i] <= table.truth[i] && table.truth[i] <= table.upper[i];
    if (!inside) covered[i / table.outputs] = false;
  }
  return covered;
}

class IntervalEvaluationTest : public testing::TestWithParam<std::tuple<size_t, size_t, bool>> {};

TEST_P(IntervalEvaluationTest, EqualsTheSlowVersion) {
  const auto [rows, outputs, strange] = GetParam();
  const Table table = random_table(rows + outputs, rows, outputs, strange);
  const IntervalEvaluation found =
      evaluate_intervals(table.all(), outputs, {.group_names = {"a", "b"}});
  const std::vector<bool> covered = covered_rows(table);

  EXPECT_EQ(found.rows, rows);
  EXPECT_EQ(found.outputs, outputs);
  EXPECT_EQ(found.coverage.covered, std::count(covered.begin(), covered.end(), true));
  EXPECT_EQ(found.coverage.rows, rows);
  expect_lengths(found.length, table, 0, 1);
  for (size_t k = 0; k < outputs; ++k) expect_lengths(found.output_length[k], table, k, outputs);

  double score = 0, weighted = 0;
  std::vector<double> inside(outputs);
  for (size_t i = 0; i < table.truth.size(); ++i) {
    const Interval interval{table.lower[i], table.upper[i]};
    inside[i % outputs] += interval.contains(table.truth[i]);
    score += interval_score(interval, table.truth[i], 0.1);
    if (table.weights[i] != 0) weighted += table.weights[i] * interval.length();
  }
  for (size_t k = 0; k < outputs; ++k) {
    EXPECT_DOUBLE_EQ(found.output_coverage[k], inside[k] / static_cast<double>(rows));
  }
  EXPECT_DOUBLE_EQ(found.interval_score, score / static_cast<double>(rows * outputs));
  EXPECT_DOUBLE_EQ(*found.weighted_length, weighted / static_cast<double>(rows));
}

TEST_P(IntervalEvaluationTest, GroupsEqualCountingRowByRow) {
  const auto [rows, outputs, strange] = GetParam();
  const Table table = random_table(rows + outputs, rows, outputs, strange);
  const IntervalEvaluation found =
      evaluate_intervals(table.all(), outputs, {.group_names = {"a", "b"}});
  const std::vector<bool> covered = covered_rows(table);

  std::map<std::string, std::pair<size_t, size_t>> groups, thirds;  // hits, rows
  for (size_t row = 0; row < rows; ++row) {
    const std::string names[] = {"a", "b", "2", "3"};
    auto& [hits, count] = groups[names[table.groups[row]]];
    hits += covered[row], ++count;
    const auto response = [&, outputs = outputs](size_t r) {
      double sum = 0;
      for (size_t k = 0; k < outputs; ++k) sum += table.truth[r * outputs + k];
      return sum;
    };
    size_t below = 0;
    for (size_t other = 0; other < rows; ++other) below += response(other) < response(row);
    const std::string third_names[] = {"lower third", "middle third", "upper third"};
    auto& [third_hits, third_count] = thirds[third_names[3 * below / rows]];
    third_hits += covered[row], ++third_count;
  }
  const auto check = [](const std::vector<GroupCoverage>& coverage, const auto& expected,
                        const GroupCoverage& worst) {
    ASSERT_EQ(coverage.size(), expected.size());
    double least = 1;
    for (const GroupCoverage& group : coverage) {
      ASSERT_TRUE(expected.contains(group.name)) << group.name;
      EXPECT_EQ(group.coverage.covered, expected.at(group.name).first);
      EXPECT_EQ(group.coverage.rows, expected.at(group.name).second);
      least = std::min(least, group.coverage.rate);
    }
    EXPECT_EQ(worst.coverage.rate, least);
  };
  check(found.groups, groups, *found.worst_group);
  check(found.response_thirds, thirds, found.worst_third);
}

TEST_P(IntervalEvaluationTest, StrataOrderRowsByMeanLength) {
  const auto [rows, outputs, strange] = GetParam();
  const Table table = random_table(rows + outputs, rows, outputs, strange);
  const IntervalEvaluation found = evaluate_intervals(table.all(), outputs, {.strata = 5});
  std::vector<double> lengths;
  std::vector<uint8_t> covered;
  for (const bool mark : covered_rows(table)) covered.push_back(mark);
  for (size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (size_t k = 0; k < outputs; ++k) {
      const size_t at = row * outputs + k;
      sum += std::max(table.upper[at] - table.lower[at], 0.0);
    }
    lengths.push_back(sum / static_cast<double>(outputs));
  }
  const std::vector<Stratum> expected = coverage_by_size(lengths, covered, 5);
  ASSERT_EQ(found.length_strata.size(), expected.size());
  for (size_t s = 0; s < expected.size(); ++s) {
    EXPECT_EQ(found.length_strata[s].low, expected[s].low);
    EXPECT_EQ(found.length_strata[s].high, expected[s].high);
    EXPECT_EQ(found.length_strata[s].coverage.covered, expected[s].coverage.covered);
    EXPECT_EQ(found.length_strata[s].coverage.rows, expected[s].coverage.rows);
  }
}

// Responses that are float32 numbers are kept as such; one that is not must change nothing.
TEST(IntervalEvaluator, ThirdsOfFloatsAreThoseOfDoubles) {
  Random random(3);
  for (const bool one_is_not : {false, true}) {
    std::vector<double> lower, upper, truth;
    std::vector<uint8_t> covered;
    for (size_t row = 0; row < 400; ++row) {
      truth.push_back(static_cast<double>(static_cast<float>(random.normal())));
      if (one_is_not && row == 300) truth.back() = 0.1;
      lower.push_back(truth.back() + random.normal());
      upper.push_back(lower.back() + 2);
      covered.push_back(lower.back() <= truth.back() && truth.back() <= upper.back());
    }
    const IntervalEvaluation found =
        evaluate_intervals({.lower = lower, .upper = upper, .truth = truth}, 1);
    const auto expected = coverage_by_thirds(std::span<const double>(truth), covered);
    ASSERT_EQ(found.response_thirds.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(found.response_thirds[i].coverage.covered, expected[i].coverage.covered);
      EXPECT_EQ(found.response_thirds[i].coverage.rows, expected[i].coverage.rows);
    }
  }
}

TEST_P(IntervalEvaluationTest, BatchesGiveTheSameBitsAsTheWhole) {
  const auto [rows, outputs, strange] = GetParam();
  const Table table = random_table(rows + outputs, rows, outputs, strange);
  const IntervalEvaluation whole = evaluate_intervals(table.all(), outputs);
  IntervalEvaluator evaluator(outputs);
  Random random(9);
  for (size_t first = 0; first < rows;) {
    const size_t count = std::min<size_t>(1 + random.below(7), rows - first);
    evaluator.add(table.part(first, count));
    first += count;
  }
  const IntervalEvaluation batched = evaluator.finish();
  EXPECT_EQ(batched.coverage.covered, whole.coverage.covered);
  EXPECT_EQ(batched.length.mean_finite, whole.length.mean_finite);
  EXPECT_EQ(batched.length.median, whole.length.median);
  EXPECT_EQ(batched.weighted_length, whole.weighted_length);
  EXPECT_EQ(batched.interval_score, whole.interval_score);
  EXPECT_EQ(batched.worst_third.coverage.rate, whole.worst_third.coverage.rate);
  EXPECT_EQ(batched.worst_group->name, whole.worst_group->name);
  EXPECT_EQ(batched.length_strata.size(), whole.length_strata.size());
}

INSTANTIATE_TEST_SUITE_P(Shapes, IntervalEvaluationTest,
                         testing::Combine(testing::Values(2, 51, 400), testing::Values(1, 3),
                                          testing::Bool()));

TEST(IntervalEvaluation, LeavesOutWhatIsNotGiven) {
  const std::vector<double> lower = {0, 1}, upper = {2, 3}, truth = {1, 5};
  const IntervalEvaluation found =
      evaluate_intervals({.lower = lower, .upper = upper, .truth = truth}, 1, {.medians = false});
  EXPECT_EQ(found.coverage.rate, 0.5);
  EXPECT_FALSE(found.length.median.has_value());
  EXPECT_FALSE(found.output_length[0].median.has_value());
  EXPECT_FALSE(found.weighted_length.has_value());
  EXPECT_TRUE(found.groups.empty());
  EXPECT_FALSE(found.worst_group.has_value());
}

// Two rows of two outputs, of which three numbers are in: coverage is the mean of the outputs and
// as sure as two rows, not four; all at once are in one row of two.
TEST(IntervalEvaluation, OutputsMayHaveACoverageEach) {
  const std::vector<double> lower = {0, 0, 0, 0}, upper = {2, 8, 2, 2}, truth = {1, 1, 1, 5};
  const std::vector<int64_t> groups = {0, 1};
  const IntervalBatch rows{.lower = lower, .upper = upper, .truth = truth, .groups = groups};
  const IntervalEvaluation each =
      evaluate_intervals(rows, 2, {.each = true, .group_names = {"a", "b"}});
  EXPECT_EQ(each.rows, 2U);
  EXPECT_EQ(each.coverage.rows, 2U);
  EXPECT_EQ(each.coverage.covered, 2U);  // 1.5 rows, rounded
  EXPECT_THAT(each.output_coverage, ElementsAre(1, 0.5));
  EXPECT_EQ(each.joint_coverage, 0.5);
  EXPECT_EQ(each.groups.at(0).coverage.rows, 1U);
  EXPECT_DOUBLE_EQ(each.volume_per_dimension.value(), (4 + 2) / 2.0);
  const IntervalEvaluation all = evaluate_intervals(rows, 2);
  EXPECT_EQ(all.coverage.covered, 1U);
  EXPECT_EQ(all.joint_coverage, 0.5);
  EXPECT_EQ(level_sums(rows, 2, /*each=*/true).covered, 3U);
  EXPECT_EQ(level_sums(rows, 2, /*each=*/true).rows, 4U);
}

// Where the ends are a box around a region, that region says what is in and how large it is.
TEST(IntervalEvaluation, BoxesAroundRegionsAreNotTheRegions) {
  const std::vector<double> lower(4, 0), upper(4, 2), truth(4, 1), volumes = {1, 3};
  const std::vector<uint8_t> inside = {1, 0};
  const IntervalBatch rows{
      .lower = lower, .upper = upper, .truth = truth, .inside = inside, .volumes = volumes};
  const IntervalEvaluation found = evaluate_intervals(rows, 2);
  EXPECT_EQ(found.coverage.covered, 1U);
  EXPECT_THAT(found.output_coverage, ElementsAre(1, 1));
  EXPECT_DOUBLE_EQ(found.volume_per_dimension.value(), 2);
  EXPECT_DOUBLE_EQ(found.volume.value(), 5);
  EXPECT_EQ(level_sums(rows, 2).covered, 1U);
}

// Rows 2 × 3 and 4 × 0: mean volume 3. One output has none.
TEST(IntervalEvaluation, VolumeOfSeveralOutputs) {
  const std::vector<double> lower = {0, 0, 0, 1}, upper = {2, 3, 4, 1}, truth = {1, 1, 1, 1};
  const IntervalBatch rows{.lower = lower, .upper = upper, .truth = truth};
  EXPECT_DOUBLE_EQ(evaluate_intervals(rows, 2).volume.value(), 3);
  EXPECT_FALSE(evaluate_intervals(rows, 1).volume.has_value());
  const std::vector<double> open = {2, kInfinity, 4, kInfinity};
  EXPECT_EQ(evaluate_intervals({.lower = lower, .upper = open, .truth = truth}, 2).volume,
            kInfinity);
}

TEST(IntervalEvaluation, NamesRowAndOutputOfANaN) {
  const Table good = random_table(1, 10, 2, true);
  const auto evaluate = [](const Table& table) {
    return [&table] {
      IntervalEvaluator evaluator(2);
      evaluator.add(table.part(0, 4));
      evaluator.add(table.part(4, 6));
    };
  };
  for (const auto member : {&Table::lower, &Table::upper, &Table::truth, &Table::weights}) {
    Table bad = good;
    (bad.*member)[2 * 7 + 1] = std::nan("");
    EXPECT_THAT(evaluate(bad), ThrowsMessage<Error>(HasSubstr("row 7, output 1")));
  }
  Table bad = good;
  bad.truth[0] = kInfinity;
  EXPECT_THAT(evaluate(bad), ThrowsMessage<Error>(HasSubstr("row 0, output 0")));
}

TEST(IntervalEvaluation, RefusesShapesThatDoNotFit) {
  const Table table = random_table(1, 10, 2, false);
  EXPECT_THROW(IntervalEvaluator(0), Error);
  EXPECT_THROW(IntervalEvaluator(2).finish(), Error);
  EXPECT_THROW(evaluate_intervals(table.all(), 3), Error);
  IntervalBatch rows = table.all();
  rows.upper = rows.upper.first(3);
  EXPECT_THROW(evaluate_intervals(rows, 2), Error);
  rows = table.all();
  rows.groups = rows.groups.first(3);
  EXPECT_THROW(evaluate_intervals(rows, 2), Error);
  IntervalEvaluator evaluator(2);
  evaluator.add(table.all());
  rows = table.all();
  rows.weights = {};
  EXPECT_THROW(evaluator.add(rows), Error);
}

// Two parts, one part, none: lengths add up, and a truth between two parts is missed.
TEST(IntervalEvaluation, Unions) {
  const std::vector<double> lower = {0, 0, kInfinity}, upper = {5, 2, -kInfinity};
  const std::vector<double> truth = {2, 2, 1};
  const std::vector<double> parts = {
      0, 1, 3, 5, 0, 2, kInfinity, -kInfinity, kInfinity, -kInfinity, kInfinity, -kInfinity};
  const IntervalBatch rows{
      .lower = lower, .upper = upper, .truth = truth, .parts = parts, .part_count = 2};
  const IntervalEvaluation result = evaluate_intervals(rows, 1);
  EXPECT_EQ(result.coverage.covered, 1U);
  EXPECT_DOUBLE_EQ(result.length.mean, 5.0 / 3);
  EXPECT_DOUBLE_EQ(result.length.empty_share, 1.0 / 3);
  EXPECT_TRUE(std::isinf(result.interval_score));  // nothing is near an empty region
  const IntervalBatch two{.lower = std::span(lower).first(2),
                          .upper = std::span(upper).first(2),
                          .truth = std::span(truth).first(2),
                          .parts = std::span(parts).first(8),
                          .part_count = 2};
  // (3 + 2/0.1 · 1 + 2) / 2: the first truth is 1 away from both parts.
  EXPECT_DOUBLE_EQ(evaluate_intervals(two, 1).interval_score, 12.5);
  const IntervalBatch wrong{
      .lower = lower, .upper = upper, .truth = truth, .parts = parts, .part_count = 3};
  EXPECT_THROW(evaluate_intervals(wrong, 1), Error);
}

TEST(IntervalEvaluation, ErrorOfThePrediction) {
  const std::vector<double> lower(4, 0.0), upper(4, 9.0), truth = {1, 10, 3, 30},
                                                          prediction = {2, 10, 3, 10};
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  EXPECT_TRUE(evaluate_intervals(rows, 2).output_error.empty());
  rows.prediction = prediction;
  const std::vector<PointError> errors = evaluate_intervals(rows, 2).output_error;
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_DOUBLE_EQ(errors[0].rmse, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(errors[0].mae, 0.5);
  EXPECT_DOUBLE_EQ(errors[0].deviation, 1);
  EXPECT_DOUBLE_EQ(errors[1].rmse, std::sqrt(200.0));
  EXPECT_DOUBLE_EQ(errors[1].mae, 10);
  EXPECT_DOUBLE_EQ(errors[1].deviation, 10);
  rows.prediction = std::span(prediction).first(3);
  EXPECT_THROW(evaluate_intervals(rows, 2), Error);
}

}  // namespace
}  // namespace fcp
