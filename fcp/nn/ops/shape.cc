// Operators that give a tensor another shape or order of dimensions and leave its numbers alone.
// Tested by tests/nn/ops/shape_test.cc.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class ShapeChangeOp : public Op {
 public:
  explicit ShapeChangeOp(OpArguments& arguments) : node_(arguments.node()) {}
  double flops(const Tensors&, const Tensors&) const override { return 0; }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }

 protected:
  Node node_;
};

// [d0, …, dn] to the matrix [d0 ⋯ d(axis−1), d(axis) ⋯ dn].
class FlattenOp : public ShapeChangeOp {
 public:
  explicit FlattenOp(OpArguments& arguments)
      : ShapeChangeOp(arguments), axis_(arguments.integer("axis", 1)) {
    arguments.expect_inputs(1, 1);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    // The axis may be the rank itself, which leaves 1 for the second dimension.
    const int64_t axis = axis_ == x.dim() ? axis_ : normalize_axis(axis_, x.dim(), node_);
    int64_t rows = 1, columns = 1;
    for (int64_t i = 0; i < x.dim(); ++i) (i < axis ? rows : columns) *= x.size(i);
    return {x.reshape({rows, columns})};
  }

 private:
  int64_t axis_;
};

// A dimension of −1 is inferred; one of 0 is copied from the input, or is 0 with allowzero.
class ReshapeOp : public ShapeChangeOp {
 public:
  explicit ReshapeOp(OpArguments& arguments) : ShapeChangeOp(arguments) {
    arguments.expect_inputs(2, 2);
    if (arguments.opset() >= 14) allow_zero_ = arguments.integer("allowzero", 0) != 0;
  }

  Tensors forward(const Tensors& inputs) const override {
    return {inputs[0].reshape(resolve(inputs[0], to_integers(inputs[1], node_, "shape")))};
  }

 private:
  std::vector<int64_t> resolve(const torch::Tensor& x, const std::vector<int64_t>& asked) const {
    std::vector<int64_t> shape = asked;
    const auto mismatch = [&] {
      fail(describe(node_), ": cannot reshape ", x.sizes(), " to ", torch::IntArrayRef(asked));
    };
    int64_t known = 1;
    int64_t inferred = -1;
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t axis = static_cast<int64_t>(i);
      if (shape[i] == 0 && !allow_zero_) {
        if (axis >= x.dim()) mismatch();
        shape[i] = x.size(axis);
      }
      if (shape[i] < -1 || (shape[i] == -1 && inferred >= 0)) mismatch();
      if (shape[i] == -1) {
        inferred = axis;
      } else if (shape[i] > 0 && known > std::numeric_limits<int64_t>::max() / shape[i]) {
        mismatch();
      } else {
        known *= shape[i];
      }
    }
    if (inferred >= 0) {
      if (known == 0 || x.numel() % known != 0) mismatch();
      shape[inferred] = x.numel() / known;
    } else if (known != x.numel()) {
      mismatch();
    }
    return shape;
  }

  bool allow_zero_ = false;
};

// Output dimension i is input dimension perm[i]; by default the order is reversed.
class TransposeOp : public ShapeChangeOp {
 public:
  explicit TransposeOp(OpArguments& arguments)
      : ShapeChangeOp(arguments),
        reverse_(!arguments.has("perm")),
        order_(arguments.integers("perm")) {
    arguments.expect_inputs(1, 1);
    std::vector<int64_t> sorted = order_, expected(order_.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(expected.begin(), expected.end(), 0);
    if (sorted != expected) {
      fail(describe(node_), ": perm ", torch::IntArrayRef(order_), " is not a permutation");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    std::vector<int64_t> order = order_;
    if (reverse_) {
      order.resize(x.dim());
      std::iota(order.rbegin(), order.rend(), 0);
    }
    if (static_cast<int64_t>(order.size()) != x.dim()) {
      fail(describe(node_), ": perm ", torch::IntArrayRef(order),
           " does not fit an input of shape ", x.sizes());
    }
    return {x.permute(order)};
  }

  // Linear bounds keep the rows of a batch in the first dimension.
  BoundRule bound_rule(const std::vector<bool>&) const override {
    return !reverse_ && !order_.empty() && order_[0] == 0 ? BoundRule::kAffine
                                                          : BoundRule::kInterval;
  }

 private:
  bool reverse_;
  std::vector<int64_t> order_;
};

// Axes brought into [0, rank), sorted; one given twice is an error.
std::vector<int64_t> distinct_axes(std::vector<int64_t> axes, int64_t rank, const Node& node) {
  for (int64_t& axis : axes) axis = normalize_axis(axis, rank, node);
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail(describe(node), ": axis ", *twice, " is given twice");
  return axes;
}

// Axes are an attribute before opset 13 and an input since. Without any, Squeeze takes out every
// dimension of 1.
class SqueezeOp : public ShapeChangeOp {
 public:
  explicit SqueezeOp(OpArguments& arguments) : ShapeChangeOp(arguments) {
    arguments.expect_inputs(1, arguments.opset() >= 13 ? 2 : 1);
    if (arguments.opset() >= 13) return;
    all_ = !arguments.has("axes");
    axes_ = arguments.integers("axes");
  }

  Tensors forward(const Tensors& inputs) const override {
    torch::Tensor x = inputs[0];
    const bool given = inputs.size() > 1 && inputs[1].defined();
    if (all_ && !given) return {x.squeeze()};
    std::vector<int64_t> axes = given ? to_integers(inputs[1], node_, "axes") : axes_;
    axes = distinct_axes(axes, x.dim(), node_);
    for (size_t i = axes.size(); i-- > 0;) {
      if (x.size(axes[i]) != 1) {
        fail(describe(node_), ": squeezes axis ", axes[i], " of ", inputs[0].sizes(),
             ", which is not 1");
      }
      x = x.squeeze(axes[i]);
    }
    return {x};
  }

 private:
  bool all_ = true;
  std::vector<int64_t> axes_;
};

// The axes count in the output's rank.
class UnsqueezeOp : public ShapeChangeOp {
 public:
  explicit UnsqueezeOp(OpArguments& arguments)
      : ShapeChangeOp(arguments), from_input_(arguments.opset() >= 13) {
    const size_t count = from_input_ ? 2 : 1;
    arguments.expect_inputs(count, count);
    if (from_input_) return;
    if (!arguments.has("axes")) fail(describe(node_), ": attribute 'axes' is missing");
    axes_ = arguments.integers("axes");
  }

  Tensors forward(const Tensors& inputs) const override {
    torch::Tensor x = inputs[0];
    std::vector<int64_t> axes = from_input_ ? to_integers(inputs[1], node_, "axes") : axes_;
    const int64_t rank = x.dim() + static_cast<int64_t>(axes.size());
    for (const int64_t axis : distinct_axes(axes, rank, node_)) x = x.unsqueeze(axis);
    return {x};
  }

 private:
  bool from_input_;
  std::vector<int64_t> axes_;
};

// The input's dimensions from start to end (exclusive) as int64 numbers, which stay on the CPU.
class ShapeOp : public ShapeChangeOp {
 public:
  explicit ShapeOp(OpArguments& arguments) : ShapeChangeOp(arguments) {
    arguments.expect_inputs(1, 1);
    if (arguments.opset() < 15) return;
    start_ = arguments.integer("start", start_);
    end_ = arguments.integer("end", end_);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::IntArrayRef sizes = inputs[0].sizes();
    const int64_t rank = inputs[0].dim();
    const auto clamp = [rank](int64_t axis) {
      return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
    };
    const int64_t start = clamp(start_);
    const int64_t count = std::max<int64_t>(0, clamp(end_) - start);
    return {torch::tensor(sizes.slice(start, count), torch::kLong)};
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kShape; }
  bool differentiable() const override { return false; }

 private:
  int64_t start_ = 0;
  int64_t end_ = std::numeric_limits<int64_t>::max();
};

// [N, C, H, W] to [N, C/b², bH, bW]. The channel index counts (row, column, channel) in mode DCR
// and (channel, row, column) in mode CRD.
class DepthToSpaceOp : public ShapeChangeOp {
 public:
  explicit DepthToSpaceOp(OpArguments& arguments)
      : ShapeChangeOp(arguments), block_(arguments.integer("blocksize", 0)) {
    arguments.expect_inputs(1, 1);
    if (block_ < 1) {
      fail(describe(node_), ": attribute 'blocksize' is ", block_, ", expected at least 1");
    }
    const std::string mode = arguments.opset() >= 11 ? arguments.text("mode", "DCR") : "DCR";
    if (mode != "DCR" && mode != "CRD") {
      fail(describe(node_), ": attribute 'mode' is '", mode, "', expected 'DCR' or 'CRD'");
    }
    depth_first_ = mode == "DCR";
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    if (x.dim() != 4 || block_ > x.size(1) || x.size(1) % (block_ * block_) != 0) {
      fail(describe(node_), ": input of shape ", x.sizes(),
           ", expected [N, C, H, W] with C a multiple of ", block_, " squared");
    }
    const int64_t n = x.size(0), h = x.size(2), w = x.size(3), b = block_;
    const int64_t c = x.size(1) / (b * b);
    const torch::Tensor blocks = depth_first_
                                     ? x.reshape({n, b, b, c, h, w}).permute({0, 3, 4, 1, 5, 2})
                                     : x.reshape({n, c, b, b, h, w}).permute({0, 1, 4, 2, 5, 3});
    return {blocks.reshape({n, c, h * b, w * b})};
  }

 private:
  int64_t block_;
  bool depth_first_ = true;
};

// [N, C, bH, bW] to [N, C·b², H, W]: the inverse of DepthToSpace in mode DCR.
class SpaceToDepthOp : public ShapeChangeOp {
 public:
  explicit SpaceToDepthOp(OpArguments& arguments)
      : ShapeChangeOp(arguments), block_(arguments.integer("blocksize", 0)) {
    arguments.expect_inputs(1, 1);
    if (block_ < 1) {
      fail(describe(node_), ": attribute 'blocksize' is ", block_, ", expected at least 1");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    if (x.dim() != 4 || x.size(2) % block_ != 0 || x.size(3) % block_ != 0) {
      fail(describe(node_), ": input of shape ", x.sizes(),
           ", expected [N, C, H, W] with H and W multiples of ", block_);
    }
    const int64_t n = x.size(0), c = x.size(1), b = block_;
    const int64_t h = x.size(2) / b, w = x.size(3) / b;
    return {
        x.reshape({n, c, h, b, w, b}).permute({0, 3, 5, 1, 2, 4}).reshape({n, c * b * b, h, w})};
  }

 private:
  int64_t block_;
};

}  // namespace

OpPointer make_space_to_depth(OpArguments& arguments) {
  return std::make_unique<SpaceToDepthOp>(arguments);
}

OpPointer make_flatten(OpArguments& arguments) { return std::make_unique<FlattenOp>(arguments); }
OpPointer make_reshape(OpArguments& arguments) { return std::make_unique<ReshapeOp>(arguments); }
OpPointer make_transpose(OpArguments& arguments) {
  return std::make_unique<TransposeOp>(arguments);
}
OpPointer make_squeeze(OpArguments& arguments) { return std::make_unique<SqueezeOp>(arguments); }
OpPointer make_unsqueeze(OpArguments& arguments) {
  return std::make_unique<UnsqueezeOp>(arguments);
}
OpPointer make_shape(OpArguments& arguments) { return std::make_unique<ShapeOp>(arguments); }
OpPointer make_depth_to_space(OpArguments& arguments) {
  return std::make_unique<DepthToSpaceOp>(arguments);
}

}  // namespace fcp
