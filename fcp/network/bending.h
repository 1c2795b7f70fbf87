// What becomes of numbers as soon as they are computed: y = f(x + added), f one of a few
// activations, in float32. A product or a convolution does this to its results while they are in
// registers or in the first caches, so that the activation and the sum behind it take no pass over
// memory of their own. The operators run the same loops, hence the same bits with and without that.
//
//   kRelu          max(x, 0)
//   kClip          min(max(x, first), second)
//   kHardSwish     x · min(max(x + 3, 0), 6) / 6
//   kHardSigmoid   min(max(first · x + second, 0), 1)
//   kGelu          x · (erf(x · 0.70710678) + 1) / 2
//   kErfGelu       the same with erf(x / first), as exporters write it
//
// NaN stays NaN. Errors of erf: fcp/base/lane_functions.h. Tested by tests/network/finish_test.cc.
#pragma once

#include <cstddef>

#include "fcp/base/lane_functions.h"

namespace fcp {

enum class Bend { kNone, kRelu, kClip, kHardSwish, kHardSigmoid, kGelu, kErfGelu };

struct Bending {
  Bend bend = Bend::kNone;
  float first = 0, second = 0;

  // Few operations, done in registers; GELU takes a loop of its own.
  bool is_short() const { return bend != Bend::kGelu && bend != Bend::kErfGelu; }
};

// One vector. Floats: as in lanes.h.
template <typename Floats, Bend kBend>
FCP_KERNEL void bend_floats(const Bending& with, typename Floats::Type* at) {
  typedef typename Floats::Type Vector;
  const Vector x = *at, zero = {};
  if constexpr (kBend == Bend::kRelu) {
    *at = x < zero ? zero : x;
  } else if constexpr (kBend == Bend::kClip) {
    const Vector low = zero + with.first, high = zero + with.second;
    *at = x > high ? high : x < low ? low : x;
  } else if constexpr (kBend == Bend::kHardSwish) {
    const Vector three = x + 3.0f, six = zero + 6.0f;
    *at = x * ((three < zero ? zero : three > six ? six : three) * 0.166666667f);
  } else if constexpr (kBend == Bend::kHardSigmoid) {
    const Vector line = x * with.first + with.second, one = zero + 1.0f;
    *at = line < zero ? zero : line > one ? one : line;
  } else if constexpr (kBend == Bend::kGelu || kBend == Bend::kErfGelu) {
    Vector y = kBend == Bend::kGelu ? x * 0.70710678f : x / with.first;
    erf_floats<Floats>(y);
    *at = x * (y + 1.0f) * 0.5f;
  }
}

// Rows of numbers, one after the other every `step`; `added`, or null, lies likewise.
struct FinishRows {
  const float* in;
  const float* added;
  float* out;  // may be `in`
  size_t rows, columns, step;
};
void finish_rows(const Bending& activation, const FinishRows& rows);

}  // namespace fcp
