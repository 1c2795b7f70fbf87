#include "fcp/training/backpropagation.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

namespace fcp {
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
