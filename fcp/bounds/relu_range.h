// The range of a Linear–ReLU–Linear head over a ball, row by row, and its inverse: the radius at
// which an end of the range reaches a number. ibp in closed form, without tensors:
//
//   low_i, high_i = max(0, p_i ∓ r reach_i)          p = W₁v + b₁,  reach_i = ‖W₁ᵢ‖ in the dual
//   norm upper(r) = Σ w⁺_i high_i + w⁻_i low_i + b₂       w⁺, w⁻: the positive and negative parts
//   of w₂ lower(r) = Σ w⁻_i high_i + w⁺_i low_i + b₂
//
// Both ends are monotone in r to the last bit, because every operation is and their order is fixed;
// at r = 0 they are one number. An end is piecewise linear in r, so that Newton's steps land next
// to the radius wanted, beginning with the linearised one, and a search among its float32
// neighbours makes it exact. Cost: O(H) an end; about a dozen ends for a radius. Tested by
// tests/bounds/relu_range_test.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "fcp/bounds/ball.h"
#include "fcp/network/relu_rows.h"

namespace fcp {

struct ReluRange {
  ReluRows head;
  std::vector<float> rising, falling;  // w⁺ and w⁻: K rows of the hidden width
};

ReluRange make_relu_range(const ReluHead& head);

// How far each hidden unit moves over a ball of radius 1, of the hidden width. `scale` as in Ball:
// D numbers, or null for ones.
std::vector<float> unit_reach(const ReluRows& head, Norm norm, const float* scale);

// Rows around which ranges are asked for: p, one row of the hidden width each.
struct HiddenRows {
  size_t rows = 0;
  const float* hidden = nullptr;
  const float* reach = nullptr;
};

// Ends of row i and output k at lower[i * K + k] and upper[…], one radius a row, ≥ 0; infinite
// where they are not a number.
void ranges_at(const ReluRange& range, const HiddenRows& rows, const float* radius, float* lower,
               float* upper);

// The smallest float32 radius ≥ 0 of each row at which every output k has
// lower(r) − r widening ≤ y_k ≤ upper(r) + r widening; +∞ where no finite radius does, NaN where y
// or the head's answer is NaN. `truth` is [rows, K].
void radii_reaching(const ReluRange& range, const HiddenRows& rows, const double* truth,
                    double widening, double* radius);

}  // namespace fcp
