// α-CROWN: CROWN with the lines it draws below and above curves optimised.
//
// Idea. Below max(0, x) on l < 0 < u lies the line αx for any α in [0, 1]; CROWN takes 0 or 1,
// whichever is closer on the whole, but each bounded number and either bound has a best choice of
// its own. So it is with the tangents of a smooth curve, of which a fan is drawn (curve_touch.h):
// any place between two of its lines will do. Every choice is sound, so gradient ascent on the
// bound itself may stop anywhere: Adam, with the places put back into their interval after each
// step and the best bound seen kept. CROWN's bound is among those that bounds.cc takes, hence never
// a looser one.
//
// The ranges inside the head are optimised in the same way, layer by layer, each number with lines
// of its own.
//
// Cost: `iterations` walks back with their gradients, for the outputs and for those hidden numbers
// whose ranges matter (crown.h); slots with more than kMostHidden of these keep CROWN's.
// Reference: Xu et al., "Fast and Complete: Enabling Complete Neural Network Verification with
// Rapid and Massively Parallel Incomplete Verifiers", 2021. Tested by tests/bounds/.
#pragma once

#include "fcp/bounds/crown.h"

namespace fcp {

constexpr int64_t kMostHidden = 2048;

// As bound_numbers, with the lines optimised.
Range bound_numbers_optimized(const LinearHead& linear, int slot, const torch::Tensor& numbers,
                              int iterations, double rate);

}  // namespace fcp
