// More normalisations: GroupNormalization (mean and variance of groups of channels),
// RMSNormalization (no mean: x / √(mean x² + ε) · scale) and LRN (each number divided by a power of
// the squares of its neighbouring channels). Assumes inference. Cost: linear in the input.
// Reference: ONNX operator specification, versions 18, 21 and 23.
// Tested by tests/nn/ops/normalization_test.cc.
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/normalization.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class GroupNormalization : public NormalizingOp {
 public:
  explicit GroupNormalization(OpArguments& arguments)
      : node_(arguments.node()),
        groups_(arguments.integer("num_groups", 0)),
        epsilon_(read_epsilon(arguments)),
        per_group_(arguments.opset() < 21) {
    arguments.expect_inputs(3, 3);
    if (!per_group_) arguments.ignore("stash_type");  // the precision inside, no less than X's here
    if (groups_ < 1) {
      fail(describe(node_), ": num_groups is ", groups_, ", expected at least 1");
    }
  }

  // X [N, C, …]; scale and bias [C], before operator set 21 [groups].
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 2, 16, node_, "X");
    expect_floating(x, node_, "X");
    const int64_t channels = x.size(1);
    if (channels % groups_ != 0 || x.numel() == 0) {
      fail(describe(node_), ": X has shape ", shape_text(x.sizes()), ", expected channels that ",
           groups_, " groups divide, and some elements");
    }
    Tensors weights;
    const char* names[] = {"scale", "bias"};
    for (size_t i = 0; i < 2; ++i) {
      expect_vector(inputs[i + 1], per_group_ ? groups_ : channels, node_, names[i]);
      const torch::Tensor weight = inputs[i + 1].to(x.scalar_type());
      weights.push_back(per_group_ ? repeat_each(weight, channels / groups_, 0) : weight);
    }
    return {torch::group_norm(x, groups_, weights[0], weights[1], epsilon_)};
  }

  Normalized normalized(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const int64_t times = per_group_ ? x.size(1) / groups_ : 1;
    Normalized result;
    result.groups = groups_;
    result.epsilon = epsilon_;
    result.scale = per_channel(repeat_each(inputs[1], times, 0), x);
    result.bias = per_channel(repeat_each(inputs[2], times, 0), x);
    return result;
  }

 private:
  Node node_;
  int64_t groups_;
  double epsilon_;
  bool per_group_;
};

class RmsNormalization : public NormalizingOp {
 public:
  explicit RmsNormalization(OpArguments& arguments)
      : node_(arguments.node()),
        axis_(arguments.integer("axis", -1)),
        epsilon_(read_epsilon(arguments)) {
    arguments.expect_inputs(2, 2);
    arguments.ignore("stash_type");  // the precision inside, no less than X's here
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_floating(x, node_, "X");
    expect_floating(inputs[1], node_, "scale");
    expect_broadcast(inputs[1], x.sizes(), node_, "scale");
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    std::vector<int64_t> axes;
    for (int64_t i = axis; i < x.dim(); ++i) axes.push_back(i);
    const torch::Tensor square = x.square().mean(axes, /*keepdim=*/true);
    return {x * torch::rsqrt(square + epsilon_) * inputs[1]};
  }

  Normalized normalized(const Tensors& inputs) const override {
    const int64_t rank = inputs[0].dim();
    Normalized result;
    result.axes = rank - normalize_axis(axis_, rank, node_);
    result.epsilon = epsilon_;
    result.centers = false;
    result.scale = inputs[1];
    return result;
  }

 private:
  Node node_;
  int64_t axis_;
  double epsilon_;
};

// x / (bias + α/size · Σ x²)^β, summed over the `size` channels around each.
class LocalResponse : public Op {
 public:
  explicit LocalResponse(OpArguments& arguments)
      : node_(arguments.node()),
        size_(arguments.integer("size", 0)),
        alpha_(arguments.number("alpha", 1e-4f)),
        beta_(arguments.number("beta", 0.75)),
        bias_(arguments.number("bias", 1)) {
    arguments.expect_inputs(1, 1);
    if (size_ < 1) fail(describe(node_), ": size is ", size_, ", expected at least 1");
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 3, 16, node_, "X");
    expect_floating(x, node_, "X");
    const int64_t before = (size_ - 1) / 2, after = size_ - 1 - before;
    const torch::Tensor lines = x.square().reshape({x.size(0), 1, x.size(1), -1});
    const torch::Tensor padded = torch::constant_pad_nd(lines, {0, 0, before, after});
    const torch::Tensor mean = torch::avg_pool2d(padded, {size_, 1}, {1, 1});
    return {x / torch::pow(mean.reshape(x.sizes()) * alpha_ + bias_, beta_)};
  }

 private:
  Node node_;
  int64_t size_;
  double alpha_;
  double beta_;
  double bias_;
};

}  // namespace

OpPointer make_group_normalization(OpArguments& arguments) {
  return std::make_unique<GroupNormalization>(arguments);
}

OpPointer make_rms_normalization(OpArguments& arguments) {
  return std::make_unique<RmsNormalization>(arguments);
}

OpPointer make_lrn(OpArguments& arguments) { return std::make_unique<LocalResponse>(arguments); }

}  // namespace fcp
