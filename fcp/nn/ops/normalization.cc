// Normalisations, y = (x − mean) / √(variance + ε) · scale + bias, which differ in where mean and
// variance come from: given per channel (batch, at inference), of each channel of each sample
// (instance), or of the trailing axes of each sample (layer).
//
// Assumes inference. BatchNormalization in training mode takes mean and variance from its input, so
// that rows depend on each other: Network refuses it unless the input is constant and it is folded
// away, as where a network standardises its own weights. Cost: linear in the input.
// Reference: ONNX operator specification. Tested by tests/nn/ops/linear_test.cc.
#include "fcp/nn/ops/normalization.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/channel_scale.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/row_functions.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

constexpr int64_t kAnyRank = std::numeric_limits<int64_t>::max();

class BatchNormalization : public Op {
 public:
  explicit BatchNormalization(OpArguments& arguments)
      : node_(arguments.node()), epsilon_(read_epsilon(arguments)) {
    arguments.expect_inputs(5, 5);
    momentum_ = arguments.number("momentum", 0.9f);
    if (arguments.integer("spatial", 1) != 1) {
      fail(describe(node_), ": spatial = 0 (one mean per place) is not supported, expected 1");
    }
    trains_ = arguments.opset() >= 14 && arguments.integer("training_mode", 0) != 0;
    for (size_t i = 1; i < node_.outputs.size(); ++i) {
      if (!node_.outputs[i].empty() && !trains_) {
        fail(describe(node_), ": has the output '", node_.outputs[i],
             "' of training mode, expected a network exported for inference");
      }
    }
  }

  // X [N, C, …] or [N] with C = 1; scale, B, mean and var [C].
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 1, kAnyRank, node_, "X");
    expect_floating(inputs[0], node_, "X");
    const torch::Tensor x = inputs[0].dim() == 1 ? inputs[0].unsqueeze(1) : inputs[0];
    Tensors statistics;
    const char* names[] = {"scale", "B", "mean", "var"};
    for (size_t i = 0; i < 4; ++i) {
      expect_vector(inputs[i + 1], x.size(1), node_, names[i]);
      expect_floating(inputs[i + 1], node_, names[i]);
      statistics.push_back(inputs[i + 1].to(x.scalar_type()));
    }
    const auto normalized = [&](const torch::Tensor& mean, const torch::Tensor& variance) {
      return torch::batch_norm(x, statistics[0], statistics[1], mean, variance, /*training=*/false,
                               /*momentum=*/0, epsilon_, /*cudnn_enabled=*/true)
          .view(inputs[0].sizes());
    };
    if (!trains_) {
      if (!takes_own(x)) return {normalized(statistics[2], statistics[3])};
      const torch::Tensor own =
          scaled_channels(x, *lines_.lines(statistics, epsilon_)).view(inputs[0].sizes());
      if (!wants_gradient(x)) return {own};
      return {with_gradient_of(normalized(statistics[2], statistics[3]), own)};
    }
    const torch::Tensor channels = x.transpose(0, 1).flatten(1);
    const torch::Tensor mean = channels.mean(1);
    const torch::Tensor variance = torch::var(channels, 1, /*unbiased=*/false);
    return {normalized(mean, variance), statistics[2] * momentum_ + mean * (1 - momentum_),
            statistics[3] * momentum_ + variance * (1 - momentum_)};
  }

  // X may come as several parts, whose channels are joined.
  torch::Tensor forward_with_epilogue(const Tensors& inputs,
                                      const Epilogue& epilogue) const override {
    const Tensors parts(inputs.begin(), inputs.end() - 4),
        statistics(inputs.end() - 4, inputs.end());
    if (trains_ || epilogue.bias.defined() || epilogue.added.defined()) return {};
    int64_t channels = 0;
    for (const torch::Tensor& part : parts) {
      if (part.dim() < 2 || !takes_own(part) || wants_gradient(part)) return {};
      channels += part.size(1);
    }
    const bool vectors = std::all_of(statistics.begin(), statistics.end(), [&](const auto& each) {
      return each.dim() == 1 && each.scalar_type() == torch::kFloat && each.size(0) == channels;
    });
    if (!vectors || (parts.size() > 1 && !join_side_by_side(parts))) return {};
    const std::shared_ptr<const ChannelLines> lines = lines_.lines(statistics, epsilon_);
    return parts.size() > 1 ? joined_channels(parts, lines.get(), epilogue.activation)
                            : scaled_channels(parts[0], *lines, epilogue.activation);
  }

  bool batch_free(const Tensors& inputs, const std::vector<bool>&) const override {
    return !trains_ && std::all_of(inputs.begin() + 1, inputs.end(), [](const torch::Tensor& each) {
      return each.defined() && each.scalar_type() == torch::kFloat;
    });
  }

  // A negative scale exchanges the ends.
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return trains_ ? BoundRule::kNone : affine_in_first(constant);
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    const torch::Tensor& x = inputs[0].lower;
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
    if (x.dim() > 1) shape[1] = -1;
    const torch::Tensor rises = (inputs[1].lower >= 0).view(shape);
    Tensors arguments;
    for (const Range& input : inputs) arguments.push_back(input.lower);
    arguments[0] = torch::where(rises, inputs[0].lower, inputs[0].upper);
    const torch::Tensor lower = forward(arguments)[0];
    arguments[0] = torch::where(rises, inputs[0].upper, inputs[0].lower);
    return {{lower, forward(arguments)[0]}};
  }
  double roundings(const Tensors&) const override { return 8; }
  torch::Tensor magnitude(const Tensors& inputs) const override {
    return forward({inputs[0], inputs[1].abs(), inputs[2].abs(), -inputs[3].abs(), inputs[4]})[0];
  }

 private:
  static bool takes_own(const torch::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == torch::kFloat && x.numel() > 0;
  }

  Node node_;
  double epsilon_;
  mutable LineCache lines_;
  double momentum_ = 0;
  bool trains_ = false;
};

class InstanceNormalization : public NormalizingOp {
 public:
  explicit InstanceNormalization(OpArguments& arguments)
      : node_(arguments.node()), epsilon_(read_epsilon(arguments)) {
    arguments.expect_inputs(3, 3);
  }

  // X [N, C, …], scale and B [C].
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 3, kAnyRank, node_, "X");
    expect_floating(x, node_, "X");
    const char* names[] = {"scale", "B"};
    for (size_t i = 0; i < 2; ++i) {
      expect_vector(inputs[i + 1], x.size(1), node_, names[i]);
      expect_type_of(x, inputs[i + 1], node_, names[i]);
    }
    if (x.numel() == 0) {
      fail(describe(node_), ": X has shape ", shape_text(x.sizes()), ", expected some elements");
    }
    return {torch::instance_norm(x, inputs[1], inputs[2], /*running_mean=*/{}, /*running_var=*/{},
                                 /*use_input_stats=*/true, /*momentum=*/0, epsilon_,
                                 /*cudnn_enabled=*/true)};
  }

  Normalized normalized(const Tensors& inputs) const override {
    Normalized result;
    result.groups = inputs[0].size(1);
    result.epsilon = epsilon_;
    result.scale = per_channel(inputs[1], inputs[0]);
    result.bias = per_channel(inputs[2], inputs[0]);
    return result;
  }

 private:
  Node node_;
  double epsilon_;
};

class LayerNormalization : public NormalizingOp {
 public:
  explicit LayerNormalization(OpArguments& arguments)
      : node_(arguments.node()),
        axis_(arguments.integer("axis", -1)),
        epsilon_(read_epsilon(arguments)),
        stash_(read_stash_type(arguments)) {
    arguments.expect_inputs(2, 3);
  }

  // Mean and InvStdDev have the normalised axes as ones, and the type stash_type says; the
  // computation itself is done in no less than the precision of X.
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_floating(x, node_, "X");
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    const torch::IntArrayRef normalized = x.sizes().slice(static_cast<size_t>(axis));
    const torch::Tensor bias = inputs.size() > 2 ? inputs[2] : torch::Tensor();
    const bool fused = check_weight(x, normalized, inputs[1], "Scale") &&
                       (!bias.defined() || check_weight(x, normalized, bias, "B"));
    if (x.numel() == 0) {
      fail(describe(node_), ": X has shape ", shape_text(x.sizes()), ", expected some elements");
    }
    const torch::Tensor scale = fused ? inputs[1] : torch::Tensor();
    const torch::Tensor shift = fused ? bias : torch::Tensor();
    const bool wide = x.is_cpu() && x.scalar_type() == torch::kDouble;
    NormedRows rows;
    if (has_row_functions(x)) rows = by_rows(x, normalized, scale, shift);
    if (wide) rows = by_sums(x, axis, scale, shift);
    if (!rows.y.defined() || (wants_gradient(x) && !wide)) {
      auto [y, mean, inverse] = torch::native_layer_norm(x, normalized, scale, shift, epsilon_);
      const bool both = rows.y.defined();
      rows = {both ? with_gradient_of(y, rows.y) : y, mean, inverse};
    }
    if (!fused) {
      rows.y = rows.y * inputs[1];
      if (bias.defined()) rows.y = rows.y + bias;
    }
    return {rows.y, rows.mean.to(stash_), rows.inverse.to(stash_)};
  }

  // Where nobody reads mean and deviation.
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    const bool one = std::count_if(node_.outputs.begin(), node_.outputs.end(),
                                   [](const std::string& name) { return !name.empty(); }) == 1;
    return one ? NormalizingOp::bound_rule(constant) : BoundRule::kNone;
  }
  Normalized normalized(const Tensors& inputs) const override {
    const int64_t rank = inputs[0].dim();
    Normalized result;
    result.axes = rank - normalize_axis(axis_, rank, node_);
    result.epsilon = epsilon_;
    result.scale = inputs[1];
    if (inputs.size() > 2) result.bias = inputs[2];
    return result;
  }

 private:
  static torch::ScalarType read_stash_type(OpArguments& arguments) {
    const int64_t type = arguments.integer("stash_type", 1);
    if (type == 1) return torch::kFloat;
    if (type == 16) return torch::kBFloat16;
    fail(describe(arguments.node()), ": stash_type is ", type,
         ", expected 1 (float) or 16 (bfloat16)");
  }

  // In double precision, where speed matters less; its sums keep rows apart as well.
  NormedRows by_sums(const torch::Tensor& x, int64_t axis, const torch::Tensor& scale,
                     const torch::Tensor& shift) const {
    std::vector<int64_t> axes(static_cast<size_t>(x.dim() - axis));
    std::iota(axes.begin(), axes.end(), axis);
    const auto mean_of = [&](const torch::Tensor& t) {
      const torch::Tensor sum = sum_along(t, axes, /*keep_axes=*/true);
      return sum * (static_cast<double>(sum.numel()) / static_cast<double>(t.numel()));
    };
    const torch::Tensor mean = mean_of(x), centered = x - mean;
    const torch::Tensor inverse =
        torch::reciprocal(torch::sqrt(mean_of(centered.square()) + epsilon_));
    torch::Tensor y = centered * inverse;
    if (scale.defined()) y = y * scale;
    if (shift.defined()) y = y + shift;
    return {y, mean, inverse};
  }

  NormedRows by_rows(const torch::Tensor& x, torch::IntArrayRef normalized,
                     const torch::Tensor& scale, const torch::Tensor& shift) const {
    std::vector<int64_t> ones = x.sizes().vec();
    std::fill(ones.end() - static_cast<ptrdiff_t>(normalized.size()), ones.end(), 1);
    NormedRows rows = norm_rows(x, c10::multiply_integers(normalized), scale, shift, epsilon_);
    rows.mean = rows.mean.view(ones);
    rows.inverse = rows.inverse.view(ones);
    return rows;
  }

  // Whether the tensor has the normalised shape; if not, it must at least broadcast to X.
  bool check_weight(const torch::Tensor& x, torch::IntArrayRef normalized,
                    const torch::Tensor& weight, const char* what) const {
    expect_type_of(x, weight, node_, what);
    if (weight.sizes() == normalized) return true;
    expect_broadcast(weight, x.sizes(), node_, what);
    return false;
  }

  Node node_;
  int64_t axis_;
  double epsilon_;
  torch::ScalarType stash_;
};

}  // namespace

OpPointer make_batch_normalization(OpArguments& arguments) {
  return std::make_unique<BatchNormalization>(arguments);
}

OpPointer make_instance_normalization(OpArguments& arguments) {
  return std::make_unique<InstanceNormalization>(arguments);
}

OpPointer make_layer_normalization(OpArguments& arguments) {
  return std::make_unique<LayerNormalization>(arguments);
}

}  // namespace fcp
