// Ridge regression on standardised columns, the linear member of a cross-fitted ensemble
// (cross_fit.h): with few rows nothing is better where the truth is nearly linear.
//
//   minimise  Σ_i ω_i (y_i − b − zᵢᵀw)² + λ ‖w‖²,   z = (x − mean) / deviation
//
// Each λ is judged by what the fits without each row say of it, in closed form: with the hat matrix
// H of all rows, residual_i / (1 − H_ii). The λ of the least squared error among 14 is taken. A
// missing value is the mean of its column. ω are the weights of the rows, 1 where none are given.
//
//   answer = b + Σ_j weight_j x_j of columns as they are
//
// Cost: an eigendecomposition of min(rows, columns)². Reference: Golub, Heath, Wahba, Generalized
// Cross-Validation, 1979. Tested by tests/training/ridge_test.cc.
#pragma once

#include <torch/types.h>

#include "fcp/data/array.h"

namespace fcp {

struct RidgeFit {
  torch::Tensor mean;    // [F] float: in the place of missing values
  torch::Tensor weight;  // [F] of columns as they are, in double precision
  double bias = 0;
  double penalty = 0;      // λ, over the number of rows
  torch::Tensor left_out;  // [N] double: of each row by the fit without it
};

// x [N, F], in which NaN is a missing value, y [N, 1]; N is at least 3. `row_weight`: [N] with a
// mean of 1; undefined: all are 1.
RidgeFit fit_ridge(const Array& x, const Array& y, const torch::Tensor& row_weight = {});

}  // namespace fcp
