#include "fcp/data/row_digest.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

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

TEST(RowDigestTest, DoesNotDependOnBatches) {
  const DigestExample example = digest_example(1);
  RowDigest whole, parts;
  whole.add(example.x, example.y);
  for (const auto& rows : {rows_between(0, 10), rows_between(10, 700), rows_between(700, 1000)}) {
    parts.add(take_rows(example.x, rows), take_rows(example.y, rows));
  }
  EXPECT_EQ(whole.sketch(), parts.sketch());
  EXPECT_EQ(whole.sha256(), parts.sha256());
  const SketchSearch search(whole.sketch());
  const std::vector<uint64_t> found = search.find(example.x, example.y);
  EXPECT_EQ(found.size(), 64U);
  EXPECT_EQ(search.find(example.x, example.y, 3), found);
  RowDigest other;
  other.add(example.x, digest_example(2).y);
  EXPECT_NE(other.sketch(), parts.sketch());
}

TEST(RowDigestTest, OneNumberChangesTheDigest) {
  DigestExample example = digest_example(1);
  RowDigest before, after;
  before.add(example.x, example.y);
  example.y.values[999] += 1;
  after.add(example.x, example.y);
  EXPECT_NE(before.sha256(), after.sha256());
}

// All rows in another order, none, and half of them. The share found of 64 rows of which each is
// in one half of 1,000 has a deviation of 0.0605; 0.31 is more than five.
TEST(RowDigestTest, TheSketchEstimatesTheSharedRows) {
  const DigestExample example = digest_example(1);
  RowDigest digest;
  digest.add(example.x, example.y);
  SketchSearch all(digest.sketch()), half(digest.sketch()), none(digest.sketch());
  std::vector<size_t> backwards = rows_between(0, 1000);
  std::reverse(backwards.begin(), backwards.end());
  all.add(take_rows(example.x, backwards), take_rows(example.y, backwards));
  EXPECT_EQ(all.share(), 1);
  half.add(take_rows(example.x, rows_between(0, 500)), take_rows(example.y, rows_between(0, 500)));
  EXPECT_NEAR(half.share(), 0.5, 0.31);
  const DigestExample other = digest_example(2);
  none.add(other.x, other.y);
  EXPECT_EQ(none.share(), 0);
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
}

TEST(RowDigestTest, DamagedSketchesAreErrors) {
  EXPECT_THROW(SketchSearch("12 xyz"), Error);
  EXPECT_THROW(SketchSearch("12,13"), Error);
  EXPECT_EQ(SketchSearch("").share(), 0);
}

}  // namespace
}  // namespace fcp
