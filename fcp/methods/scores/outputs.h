// What every interval score does with the head's outputs and with the truth before it starts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/ball.h"
#include "fcp/network/network.h"
#include "fcp/scores/score.h"

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

}  // namespace fcp
