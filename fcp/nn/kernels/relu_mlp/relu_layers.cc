#include "fcp/nn/kernels/relu_mlp/relu_layers.h"

#include <algorithm>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/relu_mlp/relu_head.h"

namespace fcp {
namespace {

constexpr size_t kMostWeights = 1 << 16;
constexpr size_t kLayerRows = 48;      // a block: what it needs stays in the first cache
constexpr size_t kLayerThread = 1024;  // below, a thread costs more than it does

// One number for each of `width` inputs; empty where the row has another length.
std::vector<float> widened(const torch::Tensor& row, int64_t width) {
  if (row.numel() != 1 && row.numel() != width) return {};
  const torch::Tensor plain = row.expand({width}).contiguous();
  return {plain.data_ptr<float>(), plain.data_ptr<float>() + width};
}

int64_t inputs_of(const ReluLayers& chain) {
  return static_cast<int64_t>(chain.layers.front().affine.inputs);
}

// Whether the network says of its input what the layers do: rows of so many numbers.
bool fits_input(const Network& network, const ReluLayers& chain) {
  const TensorInfo& input = network.inputs()[0];
  return !input.known_rank || (input.shape.size() == 2 &&
                               (input.shape[1] == kDynamic || input.shape[1] == inputs_of(chain)));
}

// Whether nothing but a standardisation, which is put into the chain, stands between the network's
// input and the first layer.
bool read_scaling(BackwardReader reader, ReluLayers& chain) {
  const int64_t width = inputs_of(chain);
  const torch::Tensor deviation = reader.read_constant_row("Div");
  const torch::Tensor mean = reader.read_constant_row("Sub");
  reader.skip_identities();
  if (!reader.at_input()) return false;
  if (!deviation.defined() && !mean.defined()) return true;
  chain.mean = widened(mean.defined() ? mean : torch::zeros({1}), width);
  chain.deviation = widened(deviation.defined() ? deviation : torch::ones({1}), width);
  return !chain.mean.empty() && !chain.deviation.empty();
}

// The numbers that a block of rows needs on its way.
class LayerBlock {
 public:
  explicit LayerBlock(const ReluLayers& chain) : chain_(chain) {
    size_t widest = chain.layers.front().affine.inputs;
    for (const ReluLayer& layer : chain.layers) widest = std::max(widest, layer.affine.width);
    now_.resize(kLayerRows * widest);
    next_.resize(kLayerRows * widest);
  }

  // At most kLayerRows rows.
  void run(const float* x, size_t rows, float* out) {
    const float* in = scaled(x, rows);
    size_t stride = chain_.layers.front().affine.inputs;
    for (const ReluLayer& layer : chain_.layers) {
      const bool ends = &layer == &chain_.layers.back() && layer.affine.width == outputs();
      affine_rows(layer.affine, in, stride, rows, layer.activation, ends ? out : next_.data());
      if (ends) return;
      std::swap(now_, next_);
      in = now_.data();
      stride = layer.affine.width;
    }
    for (size_t row = 0; row < rows; ++row) {
      std::copy_n(in + row * stride, outputs(), out + row * outputs());
    }
  }

 private:
  size_t outputs() const { return chain_.layers.back().affine.outputs; }

  const float* scaled(const float* x, size_t rows) {
    if (chain_.mean.empty()) return x;
    const size_t width = chain_.mean.size();
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < width; ++i) {
        now_[row * width + i] = (x[row * width + i] - chain_.mean[i]) / chain_.deviation[i];
      }
    }
    return now_.data();
  }

  const ReluLayers& chain_;
  FloatRows now_, next_;
};

}  // namespace

std::optional<ReluLayers> match_relu_layers(const Network& network) {
  if (!network.device().is_cpu() || network.output_slots().size() != 1) return std::nullopt;
  BackwardReader reader(network, network.output_slots()[0]);
  ReluLayers chain;
  size_t weights = 0;
  while (true) {
    reader.skip_identities();
    const bool relu = reader.read_relu();
    reader.skip_identities();
    const std::optional<LinearLayer> layer = reader.read_linear();
    if (!layer) return std::nullopt;
    const int64_t outputs = layer->weight.size(0);
    if (!chain.layers.empty() && outputs != inputs_of(chain)) return std::nullopt;
    weights += static_cast<size_t>(layer->weight.numel());
    if (weights > kMostWeights) return std::nullopt;
    chain.layers.insert(chain.layers.begin(), {make_affine_rows(layer->weight, layer->bias),
                                               relu ? Activation::kRelu : Activation::kNone});
    if (read_scaling(reader, chain))
      return fits_input(network, chain) ? std::optional(chain) : std::nullopt;
  }
}

bool takes_rows(const ReluLayers& chain, const torch::Tensor& x) {
  return x.dim() == 2 && x.size(1) == inputs_of(chain) && x.is_floating_point() &&
         !x.requires_grad();
}

torch::Tensor run_layers(const ReluLayers& chain, const torch::Tensor& x) {
  const torch::Tensor plain = x.to(torch::kCPU, torch::kFloat).contiguous();
  const size_t inputs = chain.layers.front().affine.inputs;
  const size_t outputs = chain.layers.back().affine.outputs;
  torch::Tensor found = torch::empty({plain.size(0), static_cast<int64_t>(outputs)});
  const float* from = plain.data_ptr<float>();
  float* to = found.data_ptr<float>();
  parallel_rows(static_cast<size_t>(plain.size(0)), kLayerThread,
                static_cast<size_t>(at::get_num_threads()), [&](size_t begin, size_t end) {
                  LayerBlock block(chain);
                  for (size_t first = begin; first < end; first += kLayerRows) {
                    block.run(from + first * inputs, std::min(kLayerRows, end - first),
                              to + first * outputs);
                  }
                });
  return found;
}

}  // namespace fcp
