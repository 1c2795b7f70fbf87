// CROWN: the output of a head between two linear functions of the feature.
//
// Idea. Begin at the tensor to be bounded, as the identity of itself, and go back op by op: an
// affine op multiplies the coefficients by its weights, a nonlinear one is replaced by the line
// below or above it (fcp/network/curve.h), whichever the sign of its coefficient asks for. What
// arrives at the feature v is bounded over the ball in closed form by the dual norm:
//
//   A·v + b − r‖A·scale‖*  ≤  output  ≤  A'·v + b' + r‖A'·scale‖*
//
// The lines need the range of every input of a nonlinear op: by ibp (crown-ibp), or by such a walk
// of its own, intersected with the interval of the op that made it (crown); the head's first
// product has exact intervals and is spared the walk.
//
// Cost: a walk is a backward pass for each bounded number and row. They go in chunks of numbers,
// and rows in chunks too, that fit into the memory allowed (cost.h). Reference: Zhang et al., 2018;
// Xu et al., "Automatic Perturbation Analysis for Scalable Certified Robustness and Beyond", 2020.
// Tested by tests/bounds/.
#pragma once

#include <cstddef>
#include <vector>

#include "fcp/bounds/walk.h"
#include "fcp/network/linear_step.h"

namespace fcp {

// Everything that walks back over some rows share: their ranges, and each step made linear.
struct LinearHead {
  const PreparedHead* head = nullptr;
  Ball ball;
  Ranges ranges;
  std::vector<LinearStep> steps;  // one per step of the head; made where it does not merely run
  int64_t numbers_at_once = 1;    // that a walk may bound
};

// Slopes to use instead of the fixed ones, by step; empty: none.
using SlopesByStep = std::vector<FreeSlopes>;

// Fills in ranges and steps. `refine`: ranges by CROWN, else by ibp alone.
LinearHead make_linear_head(const PreparedHead& head, const Ball& ball, const FirstOutputs& first,
                            bool refine, int64_t numbers_at_once);

// Linear bounds of the numbers [first, first + count) of each row of a slot, as [N, count].
Range bound_numbers(const LinearHead& linear, int slot, int64_t first, int64_t count,
                    const SlopesByStep& slopes = {});

// All numbers of a slot, in chunks, in its shape.
Range bound_slot(const LinearHead& linear, int slot);

}  // namespace fcp
