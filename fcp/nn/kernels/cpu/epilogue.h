// What becomes of numbers as soon as they are computed: y = f(x + added), f one of a few
// activations, in float32 on the CPU. A product or a convolution does this to each part of its
// result while it is in the first caches, so that the activation and the sum behind it take no pass
// over memory of their own. The operators run the same loops, hence the same bits with and without
// that.
//
//   kRelu          max(x, 0)
//   kClip          min(max(x, first), second)
//   kHardSwish     x · min(max(x + 3, 0), 6) / 6
//   kHardSigmoid   min(max(first · x + second, 0), 1)
//   kGelu          x · (erf(x · 0.70710678) + 1) / 2
//   kErfGelu       the same with erf(x / first), as exporters write it
//
// NaN stays NaN. Errors of erf: fcp/base/lanes.h. Tested by
// tests/nn/kernels/cpu/epilogue_test.cc.
#pragma once

#include <cstddef>

#include <torch/types.h>

#include "fcp/base/lanes.h"

namespace fcp {

enum class ActivationKind { kNone, kRelu, kClip, kHardSwish, kHardSigmoid, kGelu, kErfGelu };

struct FusedActivation {
  ActivationKind kind = ActivationKind::kNone;
  float first = 0, second = 0;
};

// Rows of numbers, one after the other every `step`; `added`, or null, lies likewise.
struct EpilogueRows {
  const float* in;
  const float* added;
  float* out;  // may be `in`
  size_t rows, columns, step;
};
void epilogue_rows(const FusedActivation& activation, const EpilogueRows& rows);

// Behind a product or a convolution: bias, one number for each column, then what is added to each
// number, then the activation; undefined: nothing.
struct Epilogue {
  torch::Tensor bias, added;
  FusedActivation activation;

  bool empty() const { return !added.defined() && activation.kind == ActivationKind::kNone; }
};

// f of all numbers of x, float32 on the CPU, in the order in which they lie in memory.
torch::Tensor activated(const torch::Tensor& x, const FusedActivation& activation);

// The activations, one vector at a time, for loops whose numbers are in registers.
// Tested by tests/nn/kernels/cpu/epilogue_test.cc.

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
