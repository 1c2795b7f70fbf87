#include "fcp/training/member_stack.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace fcp {
namespace {

int64_t mask_row_length(int64_t largest) { return 2 * largest + (int64_t{1} << 19); }

torch::Tensor first_weight(const StackViews& weights) {
  return weights.layers[0].weight * weights.scale.unsqueeze(2);
}

}  // namespace

int64_t StackShape::layer_inputs(int64_t layer) const {
  return layer == 0 ? inputs : hidden[static_cast<size_t>(layer - 1)];
}

int64_t StackShape::layer_outputs(int64_t layer) const {
  return layer + 1 == layers() ? outputs : hidden[static_cast<size_t>(layer)];
}

int64_t StackShape::parameters() const {
  int64_t count = inputs;
  for (int64_t i = 0; i < layers(); ++i) count += (layer_inputs(i) + 1) * layer_outputs(i);
  return count;
}

StackViews stack_views(const torch::Tensor& parameters, const StackShape& shape) {
  const int64_t networks = parameters.size(0);
  StackViews views;
  views.scale = parameters.narrow(1, 0, shape.inputs);
  int64_t offset = shape.inputs;
  for (int64_t i = 0; i < shape.layers(); ++i) {
    const int64_t in = shape.layer_inputs(i), out = shape.layer_outputs(i);
    views.layers.push_back(
        {.weight = parameters.narrow(1, offset, in * out).view({networks, in, out}),
         .bias = parameters.narrow(1, offset + in * out, out).unsqueeze(1)});
    offset += (in + 1) * out;
  }
  return views;
}

torch::Tensor initial_stack(const StackShape& shape, std::span<const uint64_t> seeds) {
  const int64_t networks = static_cast<int64_t>(seeds.size());
  torch::Tensor parameters = torch::ones({networks, shape.parameters()}, torch::kFloat);
  for (int64_t s = 0; s < networks; ++s) {
    Random random(seeds[static_cast<size_t>(s)]);
    float* value = parameters[s].data_ptr<float>() + shape.inputs;
    for (int64_t i = 0; i < shape.layers(); ++i) {
      const double bound = 1 / std::sqrt(static_cast<double>(shape.layer_inputs(i)));
      const int64_t count = (shape.layer_inputs(i) + 1) * shape.layer_outputs(i);
      for (int64_t k = 0; k < count; ++k) {
        *value++ = static_cast<float>((2 * random.uniform() - 1) * bound);
      }
    }
  }
  return parameters;
}

DropoutMasks::DropoutMasks(double rate, int64_t largest, uint64_t seed, torch::Device device)
    : rate_(rate), random_(seed) {
  if (rate == 0) return;
  torch::Tensor row = torch::empty({mask_row_length(largest)}, torch::kFloat);
  const float kept = static_cast<float>(1 / (1 - rate));
  float* values = row.data_ptr<float>();
  for (int64_t i = 0; i < row.numel(); ++i) values[i] = random_.uniform() < rate ? 0 : kept;
  row_ = row.to(device);
}

torch::Tensor DropoutMasks::next(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const auto places = static_cast<uint64_t>(row_.numel() - count + 1);
  return row_.narrow(0, static_cast<int64_t>(random_.below(places)), count).view(shape);
}

MemberStack::MemberStack(const StackShape& shape, torch::Tensor parameters)
    : shape_(shape),
      parameters_(std::move(parameters)),
      gradient_(torch::zeros_like(parameters_)),
      weights_(stack_views(parameters_, shape_)),
      slopes_(stack_views(gradient_, shape_)) {}

torch::Tensor MemberStack::forward(const torch::Tensor& x) const {
  torch::Tensor value = torch::baddbmm(weights_.layers[0].bias, x, first_weight(weights_));
  for (size_t i = 1; i < weights_.layers.size(); ++i) {
    value.relu_();
    value = torch::baddbmm(weights_.layers[i].bias, value, weights_.layers[i].weight);
  }
  return value;
}

torch::Tensor MemberStack::forward(const torch::Tensor& x, DropoutMasks& masks) {
  x_ = x;
  hidden_.clear();
  kept_ = 1 - masks.rate();
  torch::Tensor value = torch::baddbmm(weights_.layers[0].bias, x, first_weight(weights_));
  for (size_t i = 1; i < weights_.layers.size(); ++i) {
    value.relu_();
    if (masks.rate() > 0) value.mul_(masks.next(value.sizes()));
    hidden_.push_back(value);
    value = torch::baddbmm(weights_.layers[i].bias, value, weights_.layers[i].weight);
  }
  return value;
}

// With G = xᵀ ∂a₁, the gradient of diag(s) W₁: ∂W₁ = diag(s) G and ∂sⱼ = Σₖ Gⱼₖ W₁ⱼₖ.
void MemberStack::first_layer_gradient(const torch::Tensor& slope) {
  const torch::Tensor product = torch::bmm(x_.transpose(1, 2), slope);
  torch::mul_out(slopes_.layers[0].weight, product, weights_.scale.unsqueeze(2));
  slopes_.scale.copy_((product * weights_.layers[0].weight).sum(2));
}

void MemberStack::backward(const torch::Tensor& output_gradient) {
  torch::Tensor slope = output_gradient;  // ∂aₗ
  for (size_t i = weights_.layers.size(); i-- > 0;) {
    slopes_.layers[i].bias.copy_(slope.sum(1, /*keepdim=*/true));
    if (i == 0) return first_layer_gradient(slope);
    const torch::Tensor& input = hidden_[i - 1];
    slopes_.layers[i].weight.baddbmm_(input.transpose(1, 2), slope, /*beta=*/0, /*alpha=*/1);
    // h > 0 exactly where the ReLU passed and dropout kept; what it kept it scaled by 1/kept.
    // (Not baddbmm with beta 0: libtorch 1.13 multiplies memory that nobody has written by that 0
    // where matrices are small, and whatever NaN stood there stays.)
    slope = torch::bmm(slope, weights_.layers[i].weight.transpose(1, 2)).mul_(1 / kept_);
    slope = torch::threshold_backward(slope, input, 0);
  }
}

void MemberStack::keep(const torch::Tensor& networks) {
  parameters_ = parameters_.index_select(0, networks);
  gradient_ = torch::zeros_like(parameters_);
  weights_ = stack_views(parameters_, shape_);
  slopes_ = stack_views(gradient_, shape_);
}

namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

void adam_tensors(torch::Tensor parameters, const torch::Tensor& gradient, torch::Tensor mean,
                  torch::Tensor square, double rate, double root) {
  mean.mul_(kBeta1).add_(gradient, 1 - kBeta1);
  square.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
  parameters.addcdiv_(mean, square.sqrt().mul_(root).add_(kEpsilon), -rate);
}

}  // namespace

StackAdam::StackAdam(const torch::Tensor& parameters, int64_t scales, double scale_factor)
    : scales_(scales),
      scale_factor_(scale_factor),
      mean_(torch::zeros_like(parameters)),
      square_(torch::zeros_like(parameters)) {}

void StackAdam::step(torch::Tensor& parameters, const torch::Tensor& gradient, double rate) {
  ++steps_;
  const double t = static_cast<double>(steps_);
  const double corrected = rate / (1 - std::pow(kBeta1, t));
  const double root = 1 / std::sqrt(1 - std::pow(kBeta2, t));
  const int64_t networks = parameters.size(0), columns = parameters.size(1);
  const auto part = [](const torch::Tensor& tensor, int64_t first, int64_t count) {
    return tensor.narrow(1, first, count);
  };
  if (!parameters.is_cpu()) {
    for (const auto& [first, count, own] :
         {std::tuple(int64_t{0}, scales_, corrected * scale_factor_),
          std::tuple(scales_, columns - scales_, corrected)}) {
      adam_tensors(part(parameters, first, count), part(gradient, first, count),
                   part(mean_, first, count), part(square_, first, count), own, root);
    }
    return;
  }
  const auto pass = [&](int64_t first, int64_t count, double own) {
    adam_pass(parameters.data_ptr<float>() + first, gradient.data_ptr<float>() + first,
              mean_.data_ptr<float>() + first, square_.data_ptr<float>() + first, count,
              static_cast<float>(own), static_cast<float>(root));
  };
  constexpr int64_t kGrain = 1 << 15;
  at::parallel_for(0, networks * columns, kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {  // pieces of one network's scales or of the rest
      const int64_t column = begin % columns;
      const bool scale = column < scales_;
      const int64_t stop = std::min(end, begin - column + (scale ? scales_ : columns));
      pass(begin, stop - begin, scale ? corrected * scale_factor_ : corrected);
      begin = stop;
    }
  });
}

void StackAdam::keep(const torch::Tensor& networks) {
  mean_ = mean_.index_select(0, networks);
  square_ = square_.index_select(0, networks);
}

}  // namespace fcp
