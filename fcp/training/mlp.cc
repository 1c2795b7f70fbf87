#include "fcp/training/mlp.h"

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

}  // namespace fcp
