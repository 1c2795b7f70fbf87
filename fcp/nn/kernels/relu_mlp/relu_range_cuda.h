// relu_range.h on a CUDA device: the range of a Linear–ReLU–Linear head over balls, and the radius
// at which it reaches a number, all rows in one launch.
//
// Idea: a warp takes four rows. It sums their hidden units, which stay in shared memory beside the
// weights of the second layer, and then for each row E(t) = Σ_i w_i max(0, p_i + t m_i) + b₂ over
// its threads, which meet in a fixed order. All operations are monotone and none is left to the
// compiler to fuse: score and region ask for the same bits, whatever the batch. The search is
// that of the CPU: Newton's steps, then the neighbouring float32 numbers.
//
// Assumes hidden · (2 · outputs + 16) numbers of shared memory, 96 KB. Results differ from the
// CPU's by rounding. Cost: O(D H) per row, and O(H) for each of about a dozen ends.
// Tested by tests/methods/scores/cuda_test.cc, which needs a CUDA device.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/relu_mlp/relu_head.h"

namespace fcp {

// Whether the kernels take the head; otherwise nothing below may be called. Builds with CUDA alone
// have them (cuda_kernels.h).
bool takes_relu_range_cuda(const ReluHead& head);

// On the head's device. `moves` as unit_moves gives them, `widening` as in RangeRows.
struct ReluRangeCuda {
  ReluRangeCuda(const ReluHead& head, const std::vector<float>& moves, double widening);

  // features [N, D] float32, truth [N, K] doubles → radii [N] doubles, as radii_reaching.
  torch::Tensor radii_reaching(const torch::Tensor& features, const torch::Tensor& truth) const;

  // radius [N] doubles → [3, N, K] doubles: the predictions, the lower and the upper ends; nothing
  // (+∞, −∞) at a negative radius, everything at an infinite one.
  torch::Tensor ranges_at(const torch::Tensor& features, const torch::Tensor& radius) const;

 private:
  torch::Tensor w1_;  // [D, H]
  torch::Tensor b1_, w2_, b2_, moves_;
  double widening_;
};

}  // namespace fcp
