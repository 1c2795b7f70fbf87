// The range of a Linear–ReLU–Linear head over balls, and its inverse: the radius at which an end of
// the range reaches a number. ibp in closed form, without tensors. A unit with a positive weight
// moves an end of the range where its own upper end does, one with a negative weight where its
// lower end does, so that both ends of an output are one function of a signed radius t:
//
//   E(t) = Σ_i w_i max(0, p_i + t m_i) + b₂      p = W₁v + b₁,  m_i = ±‖W₁ᵢ‖ in the dual norm,
//   upper(r) = E(r),  lower(r) = E(−r)           with the sign of w_i
//
// E only grows with t, to the last bit: every operation is monotone and their order is fixed. It is
// piecewise linear, so that Newton's steps land next to the radius wanted, the first at the
// linearised one, and a search among its float32 neighbours makes it exact.
//
// Sixteen rows go side by side, one in each lane, through the same operations; what a row gets does
// not depend on its neighbours. Cost: O(H) for an end, about a dozen ends for a radius.
// Tested by tests/bounds/relu_range_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fcp/bounds/bounds.h"
#include "fcp/bounds/walk.h"
#include "fcp/nn/kernels/relu_mlp/affine_rows.h"

namespace fcp {

// m of each output, H numbers each, for balls of radius 1. `scale` as in Ball: D numbers, or null
// for ones.
std::vector<float> unit_moves(const ReluRows& head, Norm norm, const float* scale);

// Some rows, the first of which begins a block, with the balls around them. Both ends of an output
// are moved outwards by `widening` times the radius.
struct RangeRows {
  const ReluRows& head;
  const std::vector<float>& moves;
  const HiddenBlocks& hidden;
  size_t first = 0, rows = 0;
  double widening = 0;
};

// Ends of row i and output k at lower[i * K + k] and upper[…], one radius per row, ≥ 0; infinite
// where they are not a number.
void ranges_at(const RangeRows& rows, const float* radius, double* lower, double* upper);

// The smallest float32 radius ≥ 0 of each row at which every output k has
// lower(r) ≤ y_k ≤ upper(r); +∞ where no finite radius does, NaN where y or the head's answer is
// NaN. `truth` is [rows, K].
void radii_reaching(const RangeRows& rows, const double* truth, double* radius);

// The fast path of ibp for heads Linear–ReLU–Linear, behind the interface of bounds.h,
// one pass over the rows for each question and nothing in between. Equal to the walk up to
// rounding.
//
// The rule: ibp without outward rounding, float32 on the CPU, and every output of the head such a
// head. Features of another shape than those heads take go to the general bounds, which say what is
// wrong; so do rows whose hidden units would take more than a quarter of the memory allowed.
// Tested by tests/bounds/relu_range_test.cc.

// The fast path before `general`, or `general` itself where the rule does not hold.
std::unique_ptr<HeadBounds> with_relu_bounds(const PreparedHead& head, const BoundOptions& options,
                                             std::unique_ptr<HeadBounds> general);

}  // namespace fcp
