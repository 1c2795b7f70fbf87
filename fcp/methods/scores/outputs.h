// What every interval score does with the head's outputs and with the truth before it starts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/ball.h"
#include "fcp/methods/scores/score.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// The index of the output called `name` among the head's outputs; where `name` is empty, the only
// one that is not of a head on features (head_outputs.h). An Error lists the outputs otherwise.
size_t output_index(const Network& head, const std::string& name);

// One output as a matrix of doubles, [N, K].
torch::Tensor output_matrix(const torch::Tensor& output);

// The truth as a matrix of doubles like `prediction`; an Error names both shapes where they differ.
torch::Tensor truth_matrix(const torch::Tensor& truth, const torch::Tensor& prediction);

// The scores of N rows as plain numbers.
std::vector<double> plain_scores(const torch::Tensor& scores);

// An Error where `radius` is not a matrix of one number for each of `rows` rows and `sides` sides.
void check_radii(const torch::Tensor& radius, int64_t rows, int64_t sides);

// The radii of a score with one side as a column [N, 1] on the device of `like` [N, …]; an Error
// where their number is another.
torch::Tensor radius_column(const torch::Tensor& radius, const torch::Tensor& like);

// The functions of interval_ends.h of every number of matrices [N, K]; what has one column is
// expanded to the others.
torch::Tensor sums_up(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor distances_up(const torch::Tensor& truth, const torch::Tensor& mean);
torch::Tensor spread_margins(const torch::Tensor& spread, const torch::Tensor& radius);
torch::Tensor spread_scores(const torch::Tensor& distance, const torch::Tensor& spread);
Regions inward_regions(const torch::Tensor& prediction, const torch::Tensor& low,
                       const torch::Tensor& high, const torch::Tensor& low_margin,
                       const torch::Tensor& high_margin);

// The regions with the rows whose radius, [N, 1], is +∞ made infinite.
Regions with_infinite_rows(Regions regions, const torch::Tensor& radius);

// The norm of each row of `rows` [N, …] → [N].
torch::Tensor row_norms(const torch::Tensor& rows, Norm norm);

// One float32 number per row in the memory of the host, as most networks answer: plain scores go
// over it in one loop, where tensors would go over it once for each operation. The numbers are
// computed with as doubles, in the same order as the tensors would, so that the bits are the same.
template <typename Number>
struct Column {
  const Number* first;
  int64_t step;

  double operator[](int64_t row) const { return static_cast<double>(first[row * step]); }
};

// [N], [N, 1], …; none where it is of another type or device, or has several numbers per row.
template <typename Number>
std::optional<Column<Number>> column_of(const torch::Tensor& numbers) {
  constexpr torch::ScalarType kType =
      sizeof(Number) == sizeof(float) ? torch::kFloat : torch::kDouble;
  const bool plain = numbers.is_cpu() && numbers.scalar_type() == kType && numbers.dim() > 0 &&
                     numbers.numel() == numbers.size(0) && !numbers.requires_grad();
  if (!plain) return std::nullopt;
  return Column<Number>{numbers.data_ptr<Number>(), numbers.stride(0)};
}

// Intervals of `rows` rows with one output each, to be filled in. Both ends are of one tensor,
// [2, N, 1], so that a caller who wants them as such need not copy them.
struct RegionColumns {
  explicit RegionColumns(int64_t rows)
      : RegionColumns(rows, torch::empty({2, rows, 1}, torch::kDouble)) {}

  RegionColumns(int64_t rows, const torch::Tensor& ends)
      : regions{torch::empty({rows, 1}, torch::kDouble), ends[0], ends[1], {}},
        prediction(regions.prediction.data_ptr<double>()),
        lower(regions.lower.data_ptr<double>()),
        upper(regions.upper.data_ptr<double>()) {}

  Regions regions;
  double* prediction;
  double* lower;
  double* upper;
};

}  // namespace fcp
