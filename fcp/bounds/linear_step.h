// One step of linear bound propagation: from a linear function of an operator's outputs to one of
// its inputs that is nowhere larger (for the lower bound) or smaller (for the upper).
//
// An affine operator multiplies the coefficients by its weights, which is the vector-Jacobian
// product of forward(): autograd does it for every operator. A curve is replaced by the line below
// or above it, whichever the sign of the coefficient asks for. A product of two varying inputs is
// linearised at the middles m of their ranges, whose half-widths are r:
//
//   x·y = m_y x + m_x y − m_x m_y + e,    |e| = |x − m_x||y − m_y| ≤ r_x r_y
//
// (the mean of McCormick's two planes on either side). A maximum is replaced by the
// candidate that is the largest for sure; else from below by the one with the largest lower end and
// from above by a constant. Of any other operator planes are known (planes.h): its interval's ends,
// or its tangent moved by what it may be off. Rounding is treated as in walk.h.
//
// Cost: a forward and a backward of the operator for S · N rows. Reference: Xu et al., "Automatic
// Perturbation Analysis for Scalable Certified Robustness and Beyond", 2020.
// Tested by tests/bounds/rules_test.cc.
#pragma once

#include <functional>
#include <vector>

#include "fcp/bounds/planes.h"
#include "fcp/bounds/relax.h"
#include "fcp/bounds/walk.h"

namespace fcp {

// What the backward step of one operator needs of the ranges, made once for a batch of rows.
struct LinearStep {
  BoundRule rule = BoundRule::kNone;
  int64_t rows = 0;
  Tensors inputs;  // zeros in place of what varies; kBilinear, kSmooth: the middles
  std::vector<bool> varies;
  Tensors constants;           // kAffine: the outputs where the input is 0; undefined: 0
  Tensors errors;              // what rounding may do, and kBilinear r_x r_y; undefined: nothing
  Relaxation lines;            // kCurve
  std::vector<Planes> planes;  // kInterval, kSmooth
  torch::Tensor winner;        // kLargest: 1 at the candidate of the largest lower end
  torch::Tensor sure_winner;   // the same, 0 where another one might be larger
  torch::Tensor largest;       // there, the largest upper end; else 0
};
// `outputs` are the ranges by interval_of; `fans` asks for those of curves that are not hinges.
LinearStep make_linear_step(const Op& op, BoundRule rule, const std::vector<Range>& inputs,
                            const std::vector<Range>& outputs, double unit, bool fans = false);

// Which line below a curve, and above it, to take in place of the fixed ones, for one bound; each
// [S, N, …]. Of a hinge, `below` is the slope and `above` undefined; of a fan, both are places
// between 0, its first line, and 1, its last.
struct FreeLines {
  torch::Tensor below, above;
};
struct FreeStep {
  FreeLines for_lower, for_upper;

  bool defined() const { return for_lower.below.defined(); }
};

// From coefficients of the outputs to coefficients of the inputs; adds to the biases.
std::vector<Coefficients> step_back(const Op& op, const LinearStep& step,
                                    const std::vector<Coefficients>& outputs, Biases& biases,
                                    const FreeStep* free = nullptr);

// Coefficients of an operator's inputs from those of its outputs, Σ a·f(x) = Σ (a·f') x, by
// autograd through the operator: the vector-Jacobian product of S linear functions at once. The
// same for all S; one after the other where the function knows its number of rows, as a Reshape
// with the batch in its shape does. Cost: a forward and a backward for S · N rows. Tested by
// tests/bounds/rules_test.cc.

using LinearFunction = std::function<Tensors(const Tensors&)>;

// Coefficients [S, N, …] of the outputs, undefined where they do not matter, to those of the inputs
// that vary.
Tensors vector_jacobian(const LinearFunction& function, const LinearStep& step,
                        const Tensors& coefficients);

// Zeros of this shape that take no memory.
torch::Tensor zeros_like_shape(const torch::Tensor& like, std::vector<int64_t> shape);

}  // namespace fcp
