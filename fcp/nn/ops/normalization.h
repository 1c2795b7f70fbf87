// What the normalising operators share: ε, and their ranges over a box.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/nn/ops/op.h"

namespace fcp {

double read_epsilon(OpArguments& arguments);  // 1e-5 where the node does not say

// The range of z = c / √(mean c² + ε) over all x of a box, where c = x − mean x, or x itself where
// `centers` is false; means are over the last `axes` axes, n numbers. Two facts that always hold:
//
//   z_i rises with c_i and falls with Σ_{j≠i} c_j², so it lies between its values at the ends of
//   c_i with the others at the least (or most) that their own ranges allow; |z_i| ≤ √n, and ≤ √(n −
//   1) where the mean is taken out, for then c_i² ≤ (n − 1) Σ_{j≠i} c_j².
//
// The ranges of c are exact; that the numbers of c move together is not used beyond that.
// Monotone in the range. Cost: linear.
Range centered_interval(const Range& x, int64_t axes, double epsilon, bool centers, double unit);

// What z differs from its tangent at the middle m of the box by. With c = c₀ + d, s = mean c² + ε
// and ρ = 1/√s, where s = s₀ + t + q, t = 2 mean(c₀d) and q = mean d² ≥ 0,
//
//   z − tangent = c₀ (ρ − ρ₀ − ρ'₀ t) + d (ρ − ρ₀)
//
// and, ρ being convex and falling, −|ρ'₀| q ≤ ρ − ρ₀ − ρ'₀ t ≤ ρ(s₀ + t) − ρ₀ − ρ'₀ t, which is
// largest at an end of t. d may be off by what rounding does to c. Cost: linear.
struct CenteredRemainder {
  Range exact;
  torch::Tensor rounding;
  torch::Tensor size;  // at most |z|
};
CenteredRemainder centered_remainder(const Range& x, const torch::Tensor& middle, int64_t axes,
                                     double epsilon, bool centers, double unit);

// The same of z · scale + bias.
Remainder scaled_remainder(const CenteredRemainder& z, const torch::Tensor& scale,
                           const torch::Tensor& bias, double unit);

// z · scale + bias; an undefined bias adds nothing.
Range scaled_interval(const Range& z, const torch::Tensor& scale, const torch::Tensor& bias,
                      double unit);

// What a normalising operator does: of which numbers mean and variance are taken, and what comes
// after. Its bounds follow: beside forward() it says only this.
struct Normalized {
  int64_t axes = 1;    // over the last of these; or
  int64_t groups = 0;  // > 0: over each of so many groups of channels, all places
  double epsilon = 0;
  bool centers = true;
  torch::Tensor scale, bias;  // broadcast to x; the bias may be undefined
};
class NormalizingOp : public Op {
 public:
  BoundRule bound_rule(const std::vector<bool>& constant) const override;
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const final;
  Remainder remainder(const std::vector<Range>& inputs, const Tensors& middles,
                      double unit) const final;

 protected:
  virtual Normalized normalized(const Tensors& inputs) const = 0;
};

// A number per channel [C] for x [N, C, …].
torch::Tensor per_channel(const torch::Tensor& numbers, const torch::Tensor& x);

}  // namespace fcp
