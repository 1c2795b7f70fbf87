// CROWN: the output of a head between two linear functions of the feature.
//
// Idea. Begin at the tensor to be bounded, as the identity of itself, and go back op by op: an
// affine op multiplies the coefficients by its weights, a nonlinear one is replaced by the line
// below or above it (fcp/bounds/relax.h), whichever the sign of its coefficient asks for. What
// arrives at the feature v is bounded over the ball in closed form by the dual norm:
//
//   A·v + b − r‖A·scale‖*  ≤  output  ≤  A'·v + b' + r‖A'·scale‖*
//
// The lines need the range of every input of a nonlinear op: by ibp (crown-ibp), or by such a walk
// of its own, intersected with the interval of the op that made it (crown); the head's first
// product has exact intervals and is spared the walk, and so is a number that only hinges read and
// whose interval does not hold 0: there the line is the function itself.
//
// Cost: a walk is a backward pass for each bounded number and row. They go in chunks of numbers,
// and rows in chunks too, that fit into the memory allowed (cost.h). Reference: Zhang et al., 2018;
// Xu et al., "Automatic Perturbation Analysis for Scalable Certified Robustness and Beyond", 2020.
// Tested by tests/bounds/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/linear_step.h"
#include "fcp/bounds/walk.h"

namespace fcp {

// Everything that walks back over some rows share: their ranges, and each step made linear.
struct LinearHead {
  const PreparedHead* head = nullptr;
  Ball ball;
  Ranges ranges;
  std::vector<LinearStep> steps;  // one per step of the head; made where it does not merely run
  int64_t numbers_at_once = 1;    // that a walk may bound
  bool fans = false;              // whether the steps have them
};

// Lines to use instead of the fixed ones, by step; empty: none.
using FreeSteps = std::vector<FreeStep>;

// Linear bounds of some numbers of each row of a slot, [S] for all rows or [S, N], as [N, S].
Range bound_numbers(const LinearHead& linear, int slot, const torch::Tensor& numbers,
                    const FreeSteps& free = {});

// The same in chunks of numbers that fit the memory; bound_numbers where no other way is given.
using BoundWay = std::function<Range(const LinearHead&, int slot, const torch::Tensor& numbers)>;
Range bound_in_chunks(const LinearHead& linear, int slot, const torch::Tensor& numbers,
                      const BoundWay& way = {});

// All numbers of a slot, in its shape.
Range bound_slot(const LinearHead& linear, int slot, const BoundWay& way = {});

// How the ranges inside a head are found.
struct HiddenRanges {
  bool refine = false;  // by CROWN, else by ibp alone
  BoundWay improve;     // what CROWN says of them, once more; undefined: not
  int64_t most = 0;     // numbers of a slot and row that are worth it
};

// Fills in ranges and steps.
LinearHead make_linear_head(const PreparedHead& head, const Ball& ball, const FirstOutputs& first,
                            const HiddenRanges& hidden, int64_t numbers_at_once);

}  // namespace fcp
