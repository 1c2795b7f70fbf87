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
// NaN stays NaN. Errors of erf: fcp/base/lane_functions.h. Tested by
// tests/nn/kernels/cpu/epilogue_test.cc.
#pragma once

#include <cstddef>

#include <torch/types.h>

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

}  // namespace fcp
