// α-CROWN: CROWN with the slopes below its hinges optimised.
//
// Idea. Below max(0, x) on l < 0 < u lies the line αx for any α in [0, 1]; CROWN takes 0 or 1,
// whichever is closer on the whole, but each output and either bound has a best choice of its own.
// Every choice is sound, so gradient ascent on the bound itself may stop anywhere: Adam, with the
// slopes put back into their interval after each step and the best bound seen kept. The first
// bound seen is CROWN's, hence never a looser result.
//
// Assumes hinges (Relu, LeakyRelu, PRelu, Abs); the lines of all other functions, and the ranges
// inside the head, stay CROWN's. Cost: `iterations` walks back with their gradients. Reference: Xu
// et al., "Fast and Complete: Enabling Complete Neural Network Verification with Rapid and
// Massively Parallel Incomplete Verifiers", 2021. Tested by tests/bounds/.
#pragma once

#include "fcp/bounds/crown.h"

namespace fcp {

// As bound_slot, with the slopes optimised.
Range bound_slot_optimized(const LinearHead& linear, int slot, int iterations, double rate);

}  // namespace fcp
