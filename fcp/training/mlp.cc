#include "fcp/training/mlp.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

// Sizes of the layers' ends: inputs, hidden widths, outputs.
std::vector<int64_t> mlp_widths(const MlpOptions& options) {
  std::vector<int64_t> widths{options.inputs};
  widths.insert(widths.end(), options.hidden.begin(), options.hidden.end());
  widths.push_back(options.outputs);
  return widths;
}

std::vector<DenseLayer> layer_views(const torch::Tensor& flat, const MlpOptions& options) {
  const std::vector<int64_t> widths = mlp_widths(options);
  std::vector<DenseLayer> layers;
  int64_t offset = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const int64_t in = widths[i], out = widths[i + 1];
    layers.push_back({.weight = flat.narrow(0, offset, out * in).view({out, in}),
                      .bias = flat.narrow(0, offset + out * in, out)});
    offset += out * in + out;
  }
  return layers;
}

int64_t parameter_count(const MlpOptions& options) {
  const std::vector<int64_t> widths = mlp_widths(options);
  int64_t count = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) count += (widths[i] + 1) * widths[i + 1];
  return count;
}

}  // namespace

Mlp::Mlp(const MlpOptions& options)
    : options_(options),
      flat_(torch::zeros({parameter_count(options)}, torch::kFloat)),
      layers_(layer_views(flat_, options)) {}

Mlp::Mlp(const Mlp& other)
    : options_(other.options_), flat_(other.flat_.clone()), layers_(layer_views(flat_, options_)) {}

Mlp& Mlp::operator=(const Mlp& other) {
  if (this != &other) *this = Mlp(other);
  return *this;
}

std::span<float> Mlp::parameters() {
  return {flat_.data_ptr<float>(), static_cast<size_t>(flat_.numel())};
}

std::span<const float> Mlp::parameters() const {
  return {flat_.data_ptr<float>(), static_cast<size_t>(flat_.numel())};
}

torch::Tensor Mlp::forward(const torch::Tensor& x) const {
  torch::Tensor value = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    value = torch::addmm(layers_[i].bias, value, layers_[i].weight.t());
    if (i + 1 < layers_.size()) value = torch::relu(value);
  }
  return value;
}

Mlp initial_mlp(const MlpOptions& options, uint64_t seed) {
  Mlp mlp(options);
  Random random(seed);
  std::span<float> rest = mlp.parameters();
  for (const DenseLayer& layer : mlp.layers()) {
    const double bound = 1 / std::sqrt(static_cast<double>(layer.weight.size(1)));
    const size_t count = static_cast<size_t>(layer.weight.numel() + layer.bias.numel());
    for (float& value : rest.first(count)) {
      value = static_cast<float>((2 * random.uniform() - 1) * bound);
    }
    rest = rest.subspan(count);
  }
  return mlp;
}

Mlp join_networks(const Mlp& first, const Mlp& second) {
  MlpOptions options = first.options();
  const MlpOptions& other = second.options();
  if (options.inputs != other.inputs || options.hidden.size() != other.hidden.size()) {
    fail("cannot join networks of ", options.inputs, " and ", other.inputs, " inputs with ",
         options.hidden.size(), " and ", other.hidden.size(), " hidden layers");
  }
  for (size_t i = 0; i < other.hidden.size(); ++i) options.hidden[i] += other.hidden[i];
  options.outputs += other.outputs;
  Mlp pair(options);
  for (size_t i = 0; i < pair.layers().size(); ++i) {
    const DenseLayer& a = first.layers()[i];
    const DenseLayer& b = second.layers()[i];
    const DenseLayer& both = pair.layers()[i];
    const int64_t rows = a.weight.size(0);
    const int64_t columns = i == 0 ? 0 : a.weight.size(1);  // both read the same inputs
    both.weight.narrow(0, 0, rows).narrow(1, 0, a.weight.size(1)).copy_(a.weight);
    both.weight.narrow(0, rows, b.weight.size(0))
        .narrow(1, columns, b.weight.size(1))
        .copy_(b.weight);
    both.bias.narrow(0, 0, rows).copy_(a.bias);
    both.bias.narrow(0, rows, b.bias.size(0)).copy_(b.bias);
  }
  return pair;
}

namespace {

std::span<float> floats(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

void add_bias(std::span<float> values, std::span<const float> bias) {
  for (size_t start = 0; start < values.size(); start += bias.size()) {
    for (size_t j = 0; j < bias.size(); ++j) values[start + j] += bias[j];
  }
}

void add_bias_and_relu(std::span<float> values, std::span<const float> bias, float scale) {
  for (size_t start = 0; start < values.size(); start += bias.size()) {
    for (size_t j = 0; j < bias.size(); ++j) {
      const float value = values[start + j] + bias[j];
      values[start + j] = value > 0 ? value * scale : 0;
    }
  }
}

// Sets each value to 0 with probability p; one draw of 64 bits decides two values.
void drop(std::span<float> values, double p, Random& random) {
  const uint64_t limit = static_cast<uint64_t>(std::llround(p * 0x1p32));
  const auto kept = [limit](uint64_t coin) { return coin >= limit ? 1.0f : 0.0f; };
  size_t i = 0;
  for (; i + 1 < values.size(); i += 2) {
    const uint64_t coins = random.bits();
    values[i] *= kept(coins >> 32);
    values[i + 1] *= kept(coins & 0xffffffff);
  }
  if (i < values.size()) values[i] *= kept(random.bits() >> 32);
}

void sum_columns(std::span<const float> values, std::span<float> sums) {
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (size_t start = 0; start < values.size(); start += sums.size()) {
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += values[start + j];
  }
}

void close_where_zero(std::span<float> delta, std::span<const float> value, float scale) {
  for (size_t i = 0; i < delta.size(); ++i) delta[i] = value[i] > 0 ? delta[i] * scale : 0;
}

}  // namespace

Backpropagation::Backpropagation(const Mlp& mlp, int64_t most_rows, double dropout)
    : gradient_(mlp.zeros_like()), dropout_(dropout), layers_(mlp.layers()) {
  value_buffers_.push_back(torch::empty({most_rows, mlp.options().inputs}, torch::kFloat));
  for (const DenseLayer& layer : layers_) {
    transposed_.push_back(layer.weight.t());
    value_buffers_.push_back(torch::empty({most_rows, layer.bias.size(0)}, torch::kFloat));
    delta_buffers_.push_back(torch::empty_like(value_buffers_.back()));
  }
}

void Backpropagation::resize(int64_t rows) {
  if (rows == rows_) return;
  rows_ = rows;
  values_.clear();
  deltas_.clear();
  transposed_deltas_.clear();
  for (const torch::Tensor& buffer : value_buffers_) values_.push_back(buffer.narrow(0, 0, rows));
  for (const torch::Tensor& buffer : delta_buffers_) {
    deltas_.push_back(buffer.narrow(0, 0, rows));
    transposed_deltas_.push_back(deltas_.back().t());
  }
}

std::span<float> Backpropagation::inputs(int64_t rows) {
  resize(rows);
  return floats(values_.front());
}

void Backpropagation::activate(size_t layer, Random* random) {
  const std::span<float> values = floats(values_[layer + 1]);
  const std::span<const float> bias = floats(layers_[layer].bias);
  if (layer + 1 == layers_.size()) return add_bias(values, bias);
  const bool dropping = random != nullptr && dropout_ > 0 && has_dropout(layer);
  add_bias_and_relu(values, bias, dropping ? static_cast<float>(1 / (1 - dropout_)) : 1.0f);
  if (dropping) drop(values, dropout_, *random);
}

std::span<const float> Backpropagation::forward(Random* random) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    at::mm_out(values_[i + 1], values_[i], transposed_[i]);
    activate(i, random);
  }
  return floats(values_.back());
}

std::span<float> Backpropagation::output_gradient() { return floats(deltas_.back()); }

std::span<const float> Backpropagation::backward() {
  for (size_t i = layers_.size(); i-- > 0;) {
    torch::Tensor weight_gradient = gradient_.layers()[i].weight;
    at::mm_out(weight_gradient, transposed_deltas_[i], values_[i]);
    sum_columns(floats(deltas_[i]), floats(gradient_.layers()[i].bias));
    if (i == 0) break;
    at::mm_out(deltas_[i - 1], deltas_[i], layers_[i].weight);
    const float scale = has_dropout(i - 1) ? static_cast<float>(1 / (1 - dropout_)) : 1.0f;
    close_where_zero(floats(deltas_[i - 1]), floats(values_[i]), scale);
  }
  return gradient_.parameters();
}

}  // namespace fcp
