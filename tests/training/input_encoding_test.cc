#include "fcp/training/input_encoding.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

Array table_of(std::vector<std::vector<float>> columns) {
  const size_t rows = columns[0].size();
  Array x = zeros({static_cast<int64_t>(rows), static_cast<int64_t>(columns.size())});
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns.size(); ++j) {
      x.values[i * columns.size() + j] = columns[j][i];
    }
  }
  return x;
}

// The formulas of the header, one number at a time in double precision.
std::vector<double> encode_slowly(const InputEncoding& encoding, std::span<const float> row) {
  std::vector<double> encoded;
  const auto value = [&](size_t j) -> double {
    return std::isnan(row[j]) ? encoding.median[j] : row[j];
  };
  for (size_t j = 0; j < row.size(); ++j) {
    const double z = (value(j) - encoding.median[j]) / encoding.scale[j];
    encoded.push_back(z / std::sqrt(1 + z * z / 9));
  }
  for (size_t b = 0; b < encoding.bin_column.size(); ++b) {
    const double x = value(static_cast<size_t>(encoding.bin_column[b]));
    const double share = (x - encoding.bin_start[b]) / encoding.bin_width[b];
    encoded.push_back(std::min(1.0, std::max(0.0, share)));
  }
  for (const int64_t j : encoding.missing) {
    encoded.push_back(std::isnan(row[static_cast<size_t>(j)]) ? 1 : 0);
  }
  return encoded;
}

// 2024-02-29 was a Thursday, the 60th day of its year: day 8825 of the calendar.
TEST(InputEncodingTest, DatesGainACalendar) {
  Array x = zeros({400, 2});
  for (size_t i = 0; i < 400; ++i) {
    x.values[2 * i] = static_cast<float>(i);
    x.values[2 * i + 1] = 8825 - 200 + static_cast<float>(i);
  }
  x.values[2 * 200 + 1] = 8825.75f;
  x.values[2 * 3 + 1] = kMissing;
  const InputEncoding encoding = fit_input_encoding(x, {1});
  EXPECT_EQ(encoding.columns(), 2);
  const Array all = with_calendar(encoding, x);
  ASSERT_EQ(all.row_size(), 5u);
  EXPECT_EQ(all.row(200)[2], 5);  // Saturday is 0
  EXPECT_NEAR(all.row(200)[3], 59.75, 0.6);
  EXPECT_EQ(all.row(200)[4], 0.75f);
  EXPECT_TRUE(std::isnan(all.row(3)[1]));
  EXPECT_EQ(all.row(3)[4], 0.75f) << "the median is that of row 200";
  // The graph computes the very numbers.
  const torch::Tensor expected = encode_rows(fit_input_encoding(all), all);
  const torch::Tensor found = encode_rows(encoding, x);
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_TRUE(torch::equal(found, expected));
  // Before 2000 as well.
  Array early = zeros({1, 2});
  early.values[1] = -1;  // Friday 1999-12-31
  EXPECT_EQ(with_calendar(encoding, early).row(0)[2], 6);
}

TEST(InputEncodingTest, TheGraphComputesTheFormulas) {
  Array x = normal_array(500, 3, 1);
  for (size_t i = 0; i < 500; ++i) {
    x.values[3 * i + 1] = static_cast<float>(i % 4);  // codes of a category
    if (i % 7 == 0) x.values[3 * i + 2] = kMissing;
  }
  x.values[0] = 1e30f;  // an outlier must not overflow
  const InputEncoding encoding = fit_input_encoding(x);
  const torch::Tensor encoded = encode_rows(encoding, x);
  ASSERT_EQ(encoded.size(1), encoding.width());
  for (size_t i = 0; i < 500; ++i) {
    const std::vector<double> expected = encode_slowly(encoding, x.row(i));
    for (size_t j = 0; j < expected.size(); ++j) {
      const double found = encoded[static_cast<int64_t>(i)][static_cast<int64_t>(j)].item<double>();
      ASSERT_NEAR(found, expected[j], 1e-4) << "row " << i << ", number " << j;
    }
  }
}

TEST(InputEncodingTest, EdgesAreQuantilesOrTheDistinctValues) {
  std::vector<float> steps, codes, binary;
  for (int i = 0; i < 801; ++i) {
    steps.push_back(static_cast<float>(i));
    codes.push_back(static_cast<float>((i * i) % 5 * 10));
    binary.push_back(static_cast<float>(i % 2));
  }
  const InputEncoding encoding = fit_input_encoding(table_of({steps, codes, binary}));
  // 8 bins of 100 values; of 0, 10 and 40 (the squares modulo 5) two bins; of 0 and 1 none.
  ASSERT_EQ(encoding.bin_column, (std::vector<int64_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(encoding.bin_start[0], 0);
  EXPECT_EQ(encoding.bin_start[7], 700);
  EXPECT_EQ(encoding.bin_width[7], 100);
  EXPECT_EQ(encoding.bin_start[8], 0);
  EXPECT_EQ(encoding.bin_width[8], 10);
  EXPECT_EQ(encoding.bin_width[9], 30);
  EXPECT_FALSE(encoding.fill);
}

TEST(InputEncodingTest, ConstantAndEmptyColumnsGiveFiniteNumbers) {
  const Array x = table_of({{7, 7, 7}, {kMissing, kMissing, kMissing}, {1, 2, kMissing}});
  const InputEncoding encoding = fit_input_encoding(x);
  EXPECT_EQ(encoding.missing, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(encode_rows(encoding, x).isfinite().all().item<bool>());
}

// The width of the first layer stays bounded however many columns there are.
TEST(InputEncodingTest, ManyColumnsShareTheBins) {
  EXPECT_LE(fit_input_encoding(normal_array(100, 300, 1)).width(), 300 + 768);
  EXPECT_EQ(fit_input_encoding(normal_array(100, 1000, 1)).width(), 1000);
}

}  // namespace
}  // namespace fcp
