// Convolutions and matrix products of bytes, as quantised networks have them:
//
//   s[p, m] = Σ_k (x_pk − x_zero) (w_km − w_zero_m)       exactly, in 32 bits
//   y = s · scale_m + shift_m, brought between two ends, as float32, or
//   q = clamp(round(y / step) + zero)                      halves to the even number
//
// by the loops of window_tile.h, four products at a time: one instruction where the processor has
// dot products of bytes, else two of 16 bits. The filters are packed once. s is one number whatever
// the order of its sum, and what follows is one sequence of operations on every processor.
//
// Rule: make_byte_filters. Cost: 2 · K · M per place, up to four times as fast as float32. Tested
// by tests/nn/kernels/cpu/byte_conv_test.cc.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/own_conv.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

// How four products are added, and the bits of a vector.
enum class ByteBranch {
  kDots512,   // by one instruction: AVX-512 VNNI
  kPairs256,  // by two, in pairs of 16 bits: AVX2
  kPlain128,  // in 32 bits, for any processor
};
// Those that this processor can run, the fastest first. All of them give the same bits.
const std::vector<ByteBranch>& byte_branches();

struct ByteFilters {
  ByteBranch branch;
  PackedPanels<int32_t> panels;  // four bytes each
  std::vector<int32_t> sums;     // Σ_k (w_km − w_zero_m)
  std::vector<int64_t> shape;    // of the filters
};

// w [M, C, y, x], bytes; zero [M] or one number, undefined: 0. Null where w − zero is no signed
// byte or a window has so many numbers that their sum could leave 32 bits.
std::shared_ptr<const ByteFilters> make_byte_filters(const torch::Tensor& w,
                                                     const torch::Tensor& zero,
                                                     ByteBranch branch = byte_branches().front());

// What becomes of the sums.
struct ByteEnd {
  std::vector<int32_t> bias;  // [M], added to s, or empty
  std::vector<float> scale;   // [M]
  std::vector<float> shift;   // [M], or empty
  float low, high;            // of y, or of q
  // Of q; 1 where the scale holds it already.
  float step = 1, zero = 0;
  torch::ScalarType type = torch::kFloat;  // of what comes out; uint8, int8
};

// x [N, C, H, W], bytes in any layout; channels-last. One group, padding not negative, no dilation
// along rows.
torch::Tensor byte_conv(const torch::Tensor& x, int32_t x_zero, const ByteFilters& filters,
                        const ConvPlan& plan, const ByteEnd& end);

// x [..., K], filters [M, K, 1, 1] → [..., M].
torch::Tensor byte_product(const torch::Tensor& x, int32_t x_zero, const ByteFilters& filters,
                           const ByteEnd& end);

}  // namespace fcp
