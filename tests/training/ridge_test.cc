#include "fcp/training/ridge.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

// Rows and targets of a line with noise; the columns have scales and means of their own.
struct RidgeTable {
  Array x, y;
};

RidgeTable noisy_line(int64_t rows, int64_t columns, double noise, uint64_t seed) {
  RidgeTable table{normal_array(rows, columns, seed), {}};
  Random random(seed + 1);
  table.y = column_of(table.x, [&](std::span<const float> x) {
    double sum = 3 + noise * random.normal();
    for (size_t d = 0; d < x.size(); ++d) sum += x[d] / (1.0 + static_cast<double>(d));
    return sum;
  });
  for (size_t i = 0; i < table.x.values.size(); ++i) {
    table.x.values[i] = 100 + 10 * table.x.values[i];
  }
  return table;
}

torch::Tensor ridge_answers(const RidgeFit& fit, const Array& rows) {
  const torch::Tensor x = tensor_of(rows);
  return torch::where(x.isnan(), fit.mean.expand_as(x), x).to(torch::kDouble).matmul(fit.weight) +
         fit.bias;
}

// The textbook's solution at one penalty, on all rows but one: [F + 1], the bias last.
torch::Tensor solved_without(const RidgeTable& table, int64_t row, double penalty) {
  const torch::Tensor x = tensor_of(table.x).to(torch::kDouble);
  const torch::Tensor y = tensor_of(table.y).to(torch::kDouble);
  const torch::Tensor mean = x.mean(0), deviation = (x - mean).square().mean(0).sqrt();
  const torch::Tensor ones = torch::ones({x.size(0), 1}, torch::kDouble);
  torch::Tensor design = torch::cat({(x - mean) / deviation, ones}, 1);
  torch::Tensor kept = torch::ones({x.size(0)}, torch::kBool);
  if (row >= 0) kept[row] = false;
  const torch::Tensor which = kept.nonzero().flatten();
  const torch::Tensor a = design.index_select(0, which), b = y.index_select(0, which);
  torch::Tensor ridge =
      torch::eye(x.size(1) + 1, torch::kDouble) * penalty * static_cast<double>(x.size(0));
  ridge[x.size(1)][x.size(1)] = 0;
  const torch::Tensor w = torch::linalg_solve(a.t().matmul(a) + ridge, a.t().matmul(b)).flatten();
  return design.matmul(w);
}

// A row without weight is as good as absent, and answers for it are those of the fit as it is.
TEST(Ridge, RowsWithoutWeightDoNotCount) {
  constexpr int64_t kKept = 30;
  const RidgeTable all = noisy_line(kKept + 10, 4, 0.5, 11);
  RidgeTable kept = all;
  kept.x.values.resize(kKept * 4);
  kept.y.values.resize(kKept);
  kept.x.shape[0] = kept.y.shape[0] = kKept;
  torch::Tensor weight = torch::zeros({kKept + 10});
  weight.narrow(0, 0, kKept).fill_(static_cast<double>(kKept + 10) / kKept);
  const RidgeFit weighed = fit_ridge(all.x, all.y, weight), without = fit_ridge(kept.x, kept.y);
  EXPECT_EQ(weighed.penalty, without.penalty);
  EXPECT_TRUE(torch::allclose(weighed.weight, without.weight, 1e-6, 1e-9));
  EXPECT_NEAR(weighed.bias, without.bias, 1e-5);
  EXPECT_TRUE(torch::allclose(weighed.left_out.narrow(0, 0, kKept), without.left_out, 1e-6, 1e-6));
  EXPECT_TRUE(torch::allclose(weighed.left_out.narrow(0, kKept, 10),
                              ridge_answers(without, all.x).narrow(0, kKept, 10), 1e-6, 1e-4));
}

// With fewer and with more columns than rows.
TEST(Ridge, AnswersAreThoseOfTheNormalEquations) {
  for (const int64_t columns : {3, 40}) {
    const RidgeTable table = noisy_line(25, columns, 0.3, 1);
    const RidgeFit fit = fit_ridge(table.x, table.y);
    const torch::Tensor expected = solved_without(table, -1, fit.penalty);
    EXPECT_LT(largest_difference(ridge_answers(fit, table.x), expected), 1e-6) << columns;
    for (const int64_t row : {0, 7, 24}) {
      const double without = solved_without(table, row, fit.penalty)[row].item<double>();
      EXPECT_NEAR(fit.left_out[row].item<double>(), without, 1e-6) << columns << " " << row;
    }
  }
}

TEST(Ridge, ShrinksWhereThereIsNothingToLearn) {
  RidgeTable table = noisy_line(60, 30, 0, 2);
  table.y = column_of(normal_array(60, 1, 9), [](std::span<const float> x) { return x[0]; });
  const RidgeFit noise = fit_ridge(table.x, table.y);
  const RidgeTable line = noisy_line(60, 3, 0.01, 3);
  const RidgeFit exact = fit_ridge(line.x, line.y);
  EXPECT_GT(noise.penalty, 100 * exact.penalty);
  EXPECT_NEAR(exact.weight[0].item<double>(), 0.1, 0.001);
}

TEST(Ridge, TakesMissingValuesAndColumnsThatDoNotVary) {
  RidgeTable table = noisy_line(40, 3, 0.1, 4);
  table.x.values[4] = std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < 40; ++i) table.x.values[3 * i + 2] = 7;
  const RidgeFit fit = fit_ridge(table.x, table.y);
  EXPECT_EQ(fit.weight[2].item<double>(), 0);
  const Array nothing = {{1, 3}, std::vector<float>(3, std::nanf(""))};
  const double mean = tensor_of(table.y).mean().item<double>();
  EXPECT_NEAR(ridge_answers(fit, nothing).item<double>(), mean, 0.05);
  EXPECT_TRUE(fit.left_out.isfinite().all().item<bool>());
  Array constant = zeros({40, 1});
  EXPECT_EQ(fit_ridge(table.x, constant).weight.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace fcp
