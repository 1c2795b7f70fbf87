#include "fcp/nn/kernels/relu_mlp/hidden_blocks.h"

#include <algorithm>

#include "fcp/base/lanes.h"

namespace fcp {
namespace {

// Sixteen rows of the hidden width become a block.
FCP_AVX512 void make_block_avx512(const ReluRows& head, const float* rows, float* block) {
  for (size_t i = 0; i < head.hidden_width; i += kLanes) {
    transpose_lanes(rows + i, head.hidden_width, block + i * kLanes);
  }
}

void make_block_plain(const ReluRows& head, const float* rows, float* block) {
  for (size_t i = 0; i < head.hidden_width; ++i) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      block[i * kLanes + lane] = rows[lane * head.hidden_width + i];
    }
  }
}

}  // namespace

HiddenBlocks::HiddenBlocks(const ReluRows& head, size_t rows)
    : units_(head.hidden_width), numbers_(padded(rows) * head.hidden_width) {}

size_t HiddenBlocks::bytes(const ReluRows& head, size_t rows) {
  return padded(rows) * head.hidden_width * sizeof(float);
}

void HiddenBlocks::fill(const ReluRows& head, const float* features, size_t first, size_t rows) {
  constexpr size_t kAtOnce = 3 * kLanes;
  const size_t width = head.hidden_width;
  FloatRows plain(std::min(padded(rows), kAtOnce) * width);
  for (size_t done = 0; done < rows; done += kAtOnce) {
    const size_t count = std::min(kAtOnce, rows - done);
    hidden_rows(head, features + done * head.features, count, plain.data());
    for (size_t row = 0; row < count; row += kLanes) {
      const auto make_block = simd_width() == 512 ? make_block_avx512 : make_block_plain;
      make_block(head, plain.data() + row * width, numbers_.data() + (first + done + row) * units_);
    }
  }
}

}  // namespace fcp
