#include "fcp/data/row_digest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

// Of the share: rows that are in the filter hit for certain; of the others the hits are binomial.
double standard_error(const RowOverlap& found) {
  const double others =
      std::clamp(1 - found.share(), 0.0, 1.0) / static_cast<double>(found.distinct);
  return std::sqrt(others * found.false_hits / (1 - found.false_hits));
}

struct DigestExample {
  Array x = zeros({1000, 3});
  Array y = zeros({1000, 1});
};

DigestExample digest_example(uint64_t seed) {
  DigestExample example;
  Random random(seed);
  for (float& value : example.x.values) value = static_cast<float>(random.normal());
  for (float& value : example.y.values) value = static_cast<float>(random.normal());
  return example;
}

std::vector<size_t> rows_between(size_t first, size_t last) {
  std::vector<size_t> rows(last - first);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

RowFilter filter_of(const Array& x) {
  RowSample sample;
  sample.add(row_codes(x));
  return RowFilter(sample.filter());
}

RowOverlap overlap_with(const RowFilter& filter, const Array& x) {
  RowSample sample;
  sample.add(row_codes(x));
  return filter.overlap(sample);
}

TEST(RowDigestTest, DoesNotDependOnBatches) {
  const DigestExample example = digest_example(1);
  RowDigest whole, parts;
  RowSample whole_sample, parts_sample;
  whole.add(example.x, example.y);
  whole_sample.add(row_codes(example.x));
  for (const auto& rows : {rows_between(0, 10), rows_between(10, 700), rows_between(700, 1000)}) {
    parts.add(take_rows(example.x, rows), take_rows(example.y, rows));
    parts_sample.add(row_codes(take_rows(example.x, rows)));
  }
  EXPECT_EQ(whole_sample.filter(), parts_sample.filter());
  EXPECT_EQ(whole.sha256(), parts.sha256());
  EXPECT_EQ(row_codes(example.x, 3), row_codes(example.x));
}

TEST(RowDigestTest, OneNumberChangesTheDigest) {
  DigestExample example = digest_example(1);
  RowDigest before, after;
  before.add(example.x, example.y);
  example.y.values[999] += 1;
  after.add(example.x, example.y);
  EXPECT_NE(before.sha256(), after.sha256());
}

// All rows in another order, none, and half of them. The estimate of half of 1,000 rows is off by
// more than five standard errors with a probability below 1e-6.
TEST(RowDigestTest, TheFilterEstimatesTheSharedRows) {
  const DigestExample example = digest_example(1), other = digest_example(2);
  const RowFilter filter = filter_of(example.x);
  std::vector<size_t> backwards = rows_between(0, 1000);
  std::reverse(backwards.begin(), backwards.end());
  const RowOverlap all = overlap_with(filter, take_rows(example.x, backwards));
  EXPECT_EQ(all.share(), 1);
  EXPECT_EQ(all.filter_share(), 1);
  EXPECT_LT(all.chance(), 1e-100);
  EXPECT_EQ(all.distinct, 1000U);
  EXPECT_EQ(all.once, 1000U);
  EXPECT_EQ(all.filter_rows, 1000);

  Array mixed = take_rows(example.x, rows_between(0, 500));
  append_rows(take_rows(other.x, rows_between(0, 500)), mixed);
  const RowOverlap half = overlap_with(filter, mixed);
  EXPECT_LT(standard_error(half), 0.03);
  EXPECT_NEAR(half.share(), 0.5, 5 * standard_error(half));
  EXPECT_NEAR(half.filter_share(), 0.5, 5 * standard_error(half));

  const RowOverlap none = overlap_with(filter, other.x);
  EXPECT_NEAR(none.share(), 0, 5 * standard_error(none));
  EXPECT_GT(none.chance(), 1e-6);
}

// The estimate is unbiased: its mean over filters. 200 filters of 60 rows and 60 others, of which
// 20 are shared; the standard error of the mean is that of one by the root of 200.
TEST(RowDigestTest, TheEstimateIsUnbiased) {
  constexpr int kFilters = 200;
  double sum = 0, variance = 0;
  for (int i = 0; i < kFilters; ++i) {
    const Array x = digest_example(static_cast<uint64_t>(100 + i)).x;
    const RowFilter filter = filter_of(take_rows(x, rows_between(0, 60)));
    const RowOverlap found = overlap_with(filter, take_rows(x, rows_between(40, 100)));
    sum += found.share();
    variance += standard_error(found) * standard_error(found);
  }
  EXPECT_NEAR(sum / kFilters, 20.0 / 60, 5 * std::sqrt(variance) / kFilters);
}

// A third to somewhat more than half of the rows that were never added find a set bit, so that one
// row's bit says little of it: 4,000 rows; five deviations are 0.04.
TEST(RowDigestTest, OneRowCanBeDenied) {
  for (const size_t rows : {20, 72, 300, 1000}) {
    const RowFilter filter = filter_of(take_rows(digest_example(1).x, rows_between(0, rows)));
    EXPECT_GT(filter.false_hits(), 0.25) << rows;
    EXPECT_LT(filter.false_hits(), 0.65) << rows;
    uint64_t hits = 0;
    for (uint64_t seed = 2; seed < 6; ++seed) {
      hits += overlap_with(filter, digest_example(seed).x).distinct_hits;
    }
    EXPECT_NEAR(static_cast<double>(hits) / 4000, filter.false_hits(), 0.04) << rows;
  }
}

TEST(RowDigestTest, RepeatedRowsAreCountedOnceAndApart) {
  const Array x = digest_example(1).x;
  const RowFilter filter = filter_of(take_rows(x, rows_between(0, 100)));
  const RowOverlap found = overlap_with(filter, take_rows(x, std::vector<size_t>{1, 1, 1, 2, 3}));
  EXPECT_EQ(found.rows, 5U);
  EXPECT_EQ(found.row_hits, 5U);
  EXPECT_EQ(found.distinct, 3U);
  EXPECT_EQ(found.once, 2U);
  EXPECT_EQ(found.once_hits, 2U);
}

// Beyond 2^16 distinct rows a sample is kept, whatever the order, and the filter stays small.
TEST(RowDigestTest, LargeSetsAreSampled) {
  Array x = zeros({200'000, 1});
  std::iota(x.values.begin(), x.values.end(), 0.0f);
  std::vector<uint64_t> codes = row_codes(x);
  RowSample forward, backward;
  forward.add(codes);
  std::reverse(codes.begin(), codes.end());
  backward.add(codes);
  EXPECT_EQ(forward.filter(), backward.filter());
  EXPECT_EQ(forward.halvings(), 2U);
  EXPECT_LT(forward.filter().size(), 33'000U);
  const RowOverlap all = RowFilter(forward.filter()).overlap(forward);
  EXPECT_EQ(all.share(), 1);
  EXPECT_EQ(all.filter_share(), 1);
  RowSample few;
  few.add(row_codes(slice_rows(x, 0, 10'000)));
  const RowOverlap some = RowFilter(forward.filter()).overlap(few);
  EXPECT_EQ(some.share(), 1);
  EXPECT_NEAR(some.filter_share(), 0.05, 0.01);
}

TEST(RowDigestTest, ZerosAndMissingValuesHaveOneForm) {
  DigestExample one, two;
  one.x.values[0] = 0.0f;
  two.x.values[0] = -0.0f;
  one.x.values[1] = std::numeric_limits<float>::quiet_NaN();
  two.x.values[1] = -std::numeric_limits<float>::quiet_NaN();
  RowDigest first, second;
  first.add(one.x, one.y);
  second.add(two.x, two.y);
  EXPECT_EQ(first.sha256(), second.sha256());
  EXPECT_EQ(row_codes(one.x), row_codes(two.x));
}

TEST(RowDigestTest, DamagedFiltersAreErrors) {
  for (const char* text : {"", "1", "1 1 0", "1 1 0 ", "1 1 0 12x4", "1 1 0 123", "1 2 0 12",
                           "-1 1 0 12", "1 1 99 12", "99999999999999999999 1 0 12"}) {
    EXPECT_THROW(RowFilter{text}, Error) << text;
  }
  EXPECT_EQ(RowFilter("0 0 0 0").false_hits(), 0);
  EXPECT_EQ(RowFilter("4 4 0 f").overlap({}).share(), 0);
}

using Metadata = std::map<std::string, std::string>;

// Files of earlier versions hold hashes of rows with their targets.
TEST(RowDigestTest, SketchesOfEarlierVersionsAreSearched) {
  const Array x = {.shape = {2, 1}, .values = {1, 2}}, y = {.shape = {2, 1}, .values = {3, 4}};
  TrainingRows rows(Metadata{{kTrainingSketchKey, "1 e3d919fb3e28fc79"}});
  rows.add(rows.codes(x, y));
  EXPECT_EQ(rows.overlap().filter_share(), 0.5);
  EXPECT_THROW(TrainingRows(Metadata{{kTrainingSketchKey, "12 xyz"}}), Error);
  EXPECT_THROW(TrainingRows(Metadata{{kTrainingSketchKey, "12,13"}}), Error);
  TrainingRows nothing(Metadata{});
  nothing.add(nothing.codes(x, y));
  EXPECT_EQ(nothing.overlap().filter_share(), 0);
}

}  // namespace
}  // namespace fcp
