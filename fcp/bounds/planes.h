// An operator's output between two planes: functions that are constant, or that go along the
// operator's tangent at the middle m of its inputs' ranges.
//
//   f(m) + f'(m)(x − m) + e_lower  ≤  f(x)  ≤  f(m) + f'(m)(x − m) + e_upper
//
// with e from Op::remainder; or the ends of f's interval. Each number takes on either side the
// plane that is closer at the middle, and so on average over the box: the tangent where ranges are
// small, the constant where they are large.
//
// Outputs that add up to 1, as those of a softmax do, are weighed by a − κ in place of a: for any κ
//
//   Σ a_i p_i = κ + Σ (a_i − κ) p_i
//
// and the κ that gives the best bound at the middle is the a_i at which Σ upper_j over smaller a_j
// and Σ lower_j over larger ones pass 1: with constant planes the best distribution of the sum.
//
// Cost: that of the gradient; a sort where outputs add up to 1.
// Tested by tests/bounds/rules_test.cc and tests/bounds/transformer_test.cc.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/nn/ops/op.h"

namespace fcp {

// Σ lower · x + … ≤ what is bounded ≤ Σ upper · x + …, for S bounded numbers of N rows:
// [S, N, …] with the shape of x. One tensor may serve as both. Undefined: x does not matter.
struct Coefficients {
  torch::Tensor lower, upper;

  bool defined() const { return lower.defined(); }
  Coefficients& operator+=(const Coefficients& other);
};

// [S, N]: the constants that gather in the backward pass.
struct Biases {
  torch::Tensor lower, upper;
};

// Σ over everything but S and N of coefficients [S, N', …], or of their magnitudes, times values
// [N', …], of N rows; the values may be infinite where nothing depends on them, and are not
// negative where magnitudes are taken.
torch::Tensor careful_row_sums(const torch::Tensor& coefficients, const torch::Tensor& values,
                               int64_t rows, bool magnitude = false);

struct Planes {
  Range middle;               // their values at m
  torch::Tensor along_lower;  // 1 where the plane goes along the tangent, else 0;
  torch::Tensor along_upper;  // undefined: nowhere
  torch::Tensor rounding;     // what rounding adds to that; undefined: nothing
  int64_t unit_sum = -1;      // the axis along which the outputs add up to 1
};
Planes constant_planes(const Range& output);
Planes tangent_planes(const Op& op, const std::vector<Range>& inputs, const Tensors& middles,
                      const Range& output, double unit);

// The part of the coefficients that goes along the tangent, undefined where none does; the rest is
// added to the biases, and f'(m)m is left to the caller.
Coefficients between_planes(const Planes& planes, Coefficients output, int64_t rows,
                            Biases& biases);

}  // namespace fcp
