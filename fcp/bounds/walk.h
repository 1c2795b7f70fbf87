// What the walks over a head share: the head with its constants in the precision of the walk, and
// the ranges of all its tensors, forwards. ibp is this and nothing more.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/bounds.h"
#include "fcp/nn/ops/op.h"
#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// How ranges go forwards through one operator, whatever it is; linear_step.h goes backwards. Which
// rule applies, Op::bound_rule says; what is particular to an operator stands beside its forward().
//
// Rounding. The network computes in its own precision, with roundoff u, and what it computes must
// be inside. An affine operator of n terms computes Wx + b + e with |e| ≤ γ (|W||x| + |b|), where
// γ = ku / (1 − ku) and k = n + 2 whatever the order of summation (Higham, "Accuracy and Stability
// of Numerical Algorithms", §3.1); an evaluated curve is off by a few units. Both are intervals
// known from the input's range, and are added as such. The walk itself runs in double precision,
// and its own rounding, of the same form but 2⁻²⁹ of the size, is covered by one more unit in k.
// unit = 0 leaves all this out.
//
// Tested by tests/bounds/.

// Not a range: the tensor is absent, or the same for all features.
inline bool is_constant(const Range& range) {
  return !range.lower.defined() || range.lower.is_same(range.upper);
}

// Lower ends, or upper ones. A constant is both.
Tensors lower_ends(const std::vector<Range>& ranges);
Tensors upper_ends(const std::vector<Range>& ranges);

// The outputs' ranges. `known`, where given, is the range of the only output in plain arithmetic.
std::vector<Range> interval_of(const Op& op, BoundRule rule, const std::vector<Range>& inputs,
                               double unit, const Range* known = nullptr);

// kAffine: what rounding may add to each output, γ (|W||x| + |b|); empty: nothing.
Tensors affine_errors(const Op& op, const std::vector<Range>& inputs, double unit);

// A head made ready to be walked. With outward rounding the walk runs in double precision, so that
// its own rounding is nothing beside the one of the network, whose roundoff `unit` is.
struct PreparedHead {
  std::shared_ptr<const Network> network;
  std::vector<BoundPlan> plans;                   // one per step
  Tensors constants;                              // by slot
  torch::ScalarType type = torch::kFloat;         // of the walk
  torch::ScalarType output_type = torch::kFloat;  // of the ranges given out
  double unit = 0;                                // 0: no outward rounding
  torch::Tensor carried;  // numbers of a feature that stay as they are (carry.h); undefined: none
};

// Throws an Error that names a node without bounds.
PreparedHead prepare_head(std::shared_ptr<const Network> head, const BoundOptions& options);

// The ball in the walk's precision and on the head's device. Its radius may be absent. An Error
// says where a head with carried numbers is given a ball in which they vary.
Ball prepare_ball(const PreparedHead& head, const Ball& ball);

// Radii [N] for the rows of a ball that was prepared. One below 0 is an Error on the CPU; on a
// device, which is not waited for, its range is not a number.
torch::Tensor prepare_radius(const PreparedHead& head, const Ball& ball,
                             const torch::Tensor& radius);

// What the steps that read the feature make of a ball of any radius, by step; undefined where that
// is not known (see Op::over_ball). These ranges are exact: nothing is tighter.
using FirstOutputs = std::vector<Op::BallOutput>;
FirstOutputs first_outputs(const PreparedHead& head, const Ball& ball);

// The box around the ball.
Range box_around(const PreparedHead& head, const Ball& ball);

// Ranges of the head's tensors, by slot; undefined where not known or no longer needed.
using Ranges = std::vector<Range>;

// Called after each step that does not merely run, with the ranges so far and its outputs' filled
// in; may replace them.
using StepVisitor = std::function<void(size_t step, Ranges& ranges)>;

// Walks forwards. With `keep`, ranges stay when their last reader is done.
Ranges walk_forwards(const PreparedHead& head, const Ball& ball, const FirstOutputs& first,
                     bool keep, const StepVisitor& visit = {});

// The ranges of a step's inputs, and of its outputs.
std::vector<Range> step_inputs(const Step& step, const Ranges& ranges);
std::vector<Range> step_ranges(const Step& step, const Ranges& ranges);

// In the type of the head's outputs, rounded outwards where that is asked for; what is not a
// number is unbounded.
Range finished(const PreparedHead& head, const Range& range);

}  // namespace fcp
