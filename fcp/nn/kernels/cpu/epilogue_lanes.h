// The activations of epilogue.h, one vector at a time, for loops whose numbers are in registers.
// Tested by tests/nn/kernels/cpu/epilogue_test.cc.
#pragma once

#include "fcp/base/lane_functions.h"
#include "fcp/nn/kernels/cpu/epilogue.h"

namespace fcp {

// Few operations, done in registers; GELU takes a loop of its own.
inline bool is_short(const FusedActivation& with) {
  return with.kind != ActivationKind::kGelu && with.kind != ActivationKind::kErfGelu;
}

// Floats: as in lanes.h.
template <typename Floats, ActivationKind kKind>
FCP_KERNEL void activate_floats(const FusedActivation& with, typename Floats::Type* at) {
  typedef typename Floats::Type Vector;
  const Vector x = *at, zero = {};
  if constexpr (kKind == ActivationKind::kRelu) {
    *at = x < zero ? zero : x;
  } else if constexpr (kKind == ActivationKind::kClip) {
    const Vector low = zero + with.first, high = zero + with.second;
    *at = x > high ? high : x < low ? low : x;
  } else if constexpr (kKind == ActivationKind::kHardSwish) {
    const Vector three = x + 3.0f, six = zero + 6.0f;
    *at = x * ((three < zero ? zero : three > six ? six : three) * 0.166666667f);
  } else if constexpr (kKind == ActivationKind::kHardSigmoid) {
    const Vector line = x * with.first + with.second, one = zero + 1.0f;
    *at = line < zero ? zero : line > one ? one : line;
  } else if constexpr (kKind == ActivationKind::kGelu || kKind == ActivationKind::kErfGelu) {
    Vector y = kKind == ActivationKind::kGelu ? x * 0.70710678f : x / with.first;
    erf_floats<Floats>(y);
    *at = x * (y + 1.0f) * 0.5f;
  }
}

}  // namespace fcp
