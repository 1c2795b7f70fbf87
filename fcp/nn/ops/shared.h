// Pieces that many operators share: an Op out of a function, and checks with clear messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/base/special_numbers.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/nn/ops/curve.h"
#include "fcp/nn/ops/op.h"

namespace fcp {

class SignedCache;

using UnaryFunction = std::function<torch::Tensor(const torch::Tensor&)>;

// An operator of one input and one output of the same shape. Bounds go through it by its curve,
// or, without one, by `rule`.
std::unique_ptr<Op> unary_op(UnaryFunction function, Curve curve,
                             BoundRule rule = BoundRule::kNone);

// The same of one floating-point input; integers, which libtorch would quietly turn into
// floating-point numbers, are an error as in ONNX.
std::unique_ptr<Op> floating_unary_op(OpArguments& arguments, UnaryFunction function, Curve curve);

// The same of a function that treats every number alike by itself, and needs no each_alike.
std::unique_ptr<Op> alike_unary_op(OpArguments& arguments, UnaryFunction function, Curve curve);

// An activation of epilogue.h: its loops for float32 numbers on the CPU, `function` for others and
// for gradients. Needs no each_alike.
UnaryFunction own_activation(UnaryFunction function, const FusedActivation& activation);

// A curve whose value is the operator's own function. `curvature` has one more element than
// `knots`.
Curve make_curve(UnaryFunction value, UnaryFunction slope, std::vector<int> curvature,
                 std::vector<double> knots = {});
Curve make_rising_curve(UnaryFunction value, UnaryFunction slope, std::vector<int> curvature,
                        std::vector<double> knots = {});

// The shape two shapes broadcast to: aligned at the last dimension, equal or 1 in each.
std::vector<int64_t> broadcast_shape(torch::IntArrayRef a, torch::IntArrayRef b, const Node& node);

// The inputs of an element-wise operator, checked: of one type, except that float may meet double,
// and of shapes that broadcast; and brought onto one device, because numbers computed from a shape
// live on the CPU whatever device the data is on.
Tensors broadcast_inputs(const Tensors& inputs, const Node& node);

// Each element along the axis so many times, one after the other. libtorch's own repeat_interleave
// makes the host wait for the device.
torch::Tensor repeat_each(const torch::Tensor& x, int64_t times, int64_t axis);

// kAffine when nothing but the first input varies, which is then what the output depends on.
BoundRule affine_in_first(const std::vector<bool>& constant);

// Bounds of an operator that multiplies input 0 by input 1, one of them constant, times a factor,
// and adds input 2, where there is one. With W⁺ and W⁻ the weights' positive and negative parts,
//
//   lower = W⁺l + W⁻u + b        upper = W⁺u + W⁻l + b
//
// are sums of the same products in the same order whatever l and u are, and rounding is monotone:
// a larger range never gives a smaller one, to the last bit. With a cache, which an operator gives
// that multiplies the rows of input 0 by a matrix, both ends go through it at once.
std::vector<Range> product_interval(const Op& op, const std::vector<Range>& inputs,
                                    double factor = 1, SignedCache* cache = nullptr);

// Over a ball around v the product ranges over Wv + b ± r‖w‖* for each row w of the weights, times
// the scale: ‖w‖₁ for a box, ‖w‖₂ for a round ball, and for a diamond max|w|, where `columns`
// [K, M] gives the weights as a matrix, else the lesser of ‖w‖₂ and the largest weight.
Op::BallOutput product_over_ball(const Op& op, const Op::BallInput& ball, const Tensors& inputs,
                                 double factor, const torch::Tensor& columns);

// The numbers of a narrow type (types.h) nearest to x. Integers lose their upper bits, as in every
// cast; floats that become integers are cut off and clamped.
torch::Tensor to_narrow(const torch::Tensor& x, int64_t type, bool saturate);

// The numbers of a small integer tensor (shape, axes, starts, …), which must have rank 0 or 1.
std::vector<int64_t> to_integers(const torch::Tensor& tensor, const Node& node, const char* what);

// Maps an axis in [-rank, rank) to [0, rank); an error names the node otherwise.
int64_t normalize_axis(int64_t axis, int64_t rank, const Node& node);

// Product of a shape's dimensions; an error names the node when a dimension is negative or when
// the product exceeds kMaxElements, so that a small file cannot ask for gigabytes.
constexpr int64_t kMaxElements = int64_t{1} << 28;
int64_t checked_elements(const std::vector<int64_t>& shape, const Node& node);

// Ends of ranges that are not numbers, as ∞ − ∞ and 0 · ∞ leave them behind, say nothing: the range
// is open there. For operators that would otherwise make a number of them.

inline Range open_ends(const Range& range) {
  if (!range.lower.is_floating_point() || range.lower.is_same(range.upper)) return range;
  return {range.lower.masked_fill(range.lower.isnan(), -kInfinity),
          range.upper.masked_fill(range.upper.isnan(), kInfinity)};
}

// Checks of a node's input tensors before libtorch sees them, so that a malformed file gives one
// line that names the node, what was found and what was expected. `what` names the input.

std::string shape_text(torch::IntArrayRef shape);  // "[2, 3]"

// The input is there, and its rank is in [least, most].
void expect_rank(const torch::Tensor& tensor, int64_t least, int64_t most, const Node& node,
                 const char* what);

// The input is there and holds floating-point numbers.
void expect_floating(const torch::Tensor& tensor, const Node& node, const char* what);

// The input is of the same type as `data`.
void expect_type_of(const torch::Tensor& data, const torch::Tensor& tensor, const Node& node,
                    const char* what);

// The input is one-dimensional with `size` numbers.
void expect_vector(const torch::Tensor& tensor, int64_t size, const Node& node, const char* what);

// The input can be broadcast to `shape` without changing it.
void expect_broadcast(const torch::Tensor& tensor, torch::IntArrayRef shape, const Node& node,
                      const char* what);

// checked_elements for one sample. The first dimension of a batch is the caller's choice and may
// be large; what a file can blow up is the rest.
void check_sample(std::vector<int64_t> shape, const Node& node);

}  // namespace fcp
