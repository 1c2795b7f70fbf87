#include "fcp/search/front_layer.h"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/search/device_speed.h"
#include "fcp/search/tile_convolution.h"

namespace fcp {
namespace {

class LinearFront : public FrontLayer {
 public:
  // weight [M, C], bias [M] or undefined.
  LinearFront(torch::Tensor weight, torch::Tensor bias)
      : weight_(std::move(weight)), bias_(std::move(bias)), gram_(weight_.mm(weight_.t())) {}

  torch::Tensor forward(const torch::Tensor& u) const override {
    return torch::linear(u, weight_, bias_);
  }
  torch::Tensor transpose(const torch::Tensor& g) const override { return g.mm(weight_); }
  torch::Tensor gram(const torch::Tensor& g) const override { return g.mm(gram_); }

 private:
  torch::Tensor weight_, bias_, gram_;
};

// W correlated with itself: [M, C, h, w] → [M, M, 2h − 1, 2w − 1].
torch::Tensor self_correlation(const torch::Tensor& weight) {
  return torch::conv2d(weight, weight, {}, 1, {weight.size(2) - 1, weight.size(3) - 1});
}

// The convolution of a weight by tiles, made where it is needed first, and kept.
class LazyTiles {
 public:
  void set(torch::Tensor weight) { weight_ = std::move(weight); }

  // Null where the direct sum is cheaper.
  const TileConvolution* find(const torch::Tensor& images) const {
    const std::lock_guard lock(mutex_);
    if (!TileConvolution::pays(weight_, images)) return nullptr;
    if (!tiles_) tiles_.emplace(weight_);
    return &*tiles_;
  }

 private:
  torch::Tensor weight_;
  mutable std::mutex mutex_;
  mutable std::optional<TileConvolution> tiles_;
};

// Along a strip of an image, [N, C, 1, L] or [N, C, L, 1], by a kernel of the same direction: as
// one matrix product, because convolutions of strips are nobody's fast path.
torch::Tensor convolve_strip(const torch::Tensor& strip, const torch::Tensor& kernel) {
  const torch::Tensor taps = kernel.flatten(1);  // [M, C · k]
  const int64_t places = kernel.size(2) * kernel.size(3);
  const torch::Tensor line = torch::constant_pad_nd(strip.flatten(2), {places / 2, places / 2});
  const torch::Tensor near = line.unfold(2, places, 1);  // [N, C, L, k]
  const torch::Tensor columns = near.permute({1, 3, 0, 2}).reshape({taps.size(1), -1});
  return taps.mm(columns)
      .reshape({taps.size(0), strip.size(0), -1})
      .transpose(0, 1)
      .reshape({strip.size(0), taps.size(0), strip.size(2), strip.size(3)});
}

bool computes_doubles(torch::Device device) {
  if constexpr (kCudaKernels) return has_fast_doubles(device);
  return false;
}

class ConvolutionFront : public FrontLayer {
 public:
  // weight [M, C, k, k] with k 1 or 3, bias [M] or undefined.
  ConvolutionFront(torch::Tensor weight, torch::Tensor bias)
      : weight_(std::move(weight)),
        bias_(std::move(bias)),
        exact_(computes_doubles(weight_.device())) {
    front_tiles_.set(exact_ ? weight_.to(torch::kDouble) : weight_);
  }

  // All steps begin at this p and keep its rounding: in double precision where that costs nothing,
  // and as exact as a direct sum on every CUDA device.
  torch::Tensor forward(const torch::Tensor& u) const override {
    const TileConvolution* tiles = u.is_cpu() || exact_ ? front_tiles_.find(u) : nullptr;
    if (!tiles) return torch::conv2d(u, weight_, bias_, 1, weight_.size(2) / 2);
    const torch::Tensor p = tiles->forward(u);
    return bias_.defined() ? p + bias_.view({1, -1, 1, 1}) : p;
  }

  torch::Tensor transpose(const torch::Tensor& g) const override {
    const TileConvolution* tiles = front_tiles_.find(g);
    return tiles ? tiles->transpose(g)
                 : torch::conv_transpose2d(g, weight_, {}, 1, weight_.size(2) / 2);
  }

  torch::Tensor gram(const torch::Tensor& g) const override {
    std::call_once(made_, [&] { correlate(); });
    const TileConvolution* tiles = gram_tiles_.find(g);
    torch::Tensor result =
        tiles ? tiles->forward(g) : torch::conv2d(g, whole_, {}, 1, whole_.size(2) / 2);
    for (const Border& border : borders_) {
      const auto part = [&](const torch::Tensor& image) {
        torch::Tensor at = image;
        if (border.row != kAll) at = at.narrow(2, border.row == 0 ? 0 : image.size(2) - 1, 1);
        if (border.column != kAll) at = at.narrow(3, border.column == 0 ? 0 : image.size(3) - 1, 1);
        return at;
      };
      part(result).sub_(convolve_strip(part(g), border.kernel), border.sign);
    }
    return result;
  }

 private:
  static constexpr int64_t kAll = -1;

  // A side of the image or a corner of it, by the row and column of W that meets the padding there.
  struct Border {
    int64_t row, column;
    double sign;  // 1: to subtract; −1: the corners, which two sides have subtracted
    torch::Tensor kernel;
  };

  void correlate() const {
    torch::NoGradGuard no_gradients;
    whole_ = self_correlation(weight_);
    gram_tiles_.set(whole_);
    if (weight_.size(2) == 1) return;
    for (const int64_t row : {kAll, int64_t{0}, int64_t{2}}) {
      for (const int64_t column : {kAll, int64_t{0}, int64_t{2}}) {
        if (row == kAll && column == kAll) continue;
        torch::Tensor outer = weight_;
        if (row != kAll) outer = outer.narrow(2, row, 1);
        if (column != kAll) outer = outer.narrow(3, column, 1);
        const bool side = row == kAll || column == kAll;
        borders_.push_back({row, column, side ? 1.0 : -1.0, self_correlation(outer.contiguous())});
      }
    }
  }

  torch::Tensor weight_, bias_;
  bool exact_;
  LazyTiles front_tiles_;
  mutable std::once_flag made_;  // correlating costs as much as a step: not before it is needed
  mutable torch::Tensor whole_;
  mutable LazyTiles gram_tiles_;
  mutable std::vector<Border> borders_;
};

bool all_equal(const Node& node, const char* name, int64_t value) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return true;
  const auto* numbers = std::get_if<std::vector<int64_t>>(&found->second);
  if (!numbers) return false;
  for (const int64_t number : *numbers) {
    if (number != value) return false;
  }
  return true;
}

template <typename T>
T attribute_or(const Node& node, const char* name, T fallback) {
  const auto found = node.attributes.find(name);
  const T* value = found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second);
  return value ? *value : fallback;
}

bool cheaper(int64_t outputs, int64_t inputs, int64_t kernel) {
  return outputs * (2 * kernel - 1) * (2 * kernel - 1) < 2 * inputs * kernel * kernel;
}

std::shared_ptr<const FrontLayer> linear_front(const Node& node, torch::Tensor weight,
                                               const torch::Tensor& bias) {
  if (attribute_or<float>(node, "alpha", 1) != 1 || attribute_or<float>(node, "beta", 1) != 1 ||
      attribute_or<int64_t>(node, "transA", 0) != 0 || weight.dim() != 2) {
    return nullptr;
  }
  if (attribute_or<int64_t>(node, "transB", 0) == 0) weight = weight.t().contiguous();
  if (bias.defined() && bias.sizes() != torch::IntArrayRef{weight.size(0)}) return nullptr;
  if (!cheaper(weight.size(0), weight.size(1), 1)) return nullptr;
  return std::make_shared<LinearFront>(weight, bias);
}

std::shared_ptr<const FrontLayer> convolution_front(const Node& node, const torch::Tensor& weight,
                                                    const torch::Tensor& bias) {
  if (weight.dim() != 4 || weight.size(2) != weight.size(3)) return nullptr;
  const int64_t kernel = weight.size(2);
  if (kernel != 1 && kernel != 3) return nullptr;
  if (kernel == 3 && node.attributes.find("pads") == node.attributes.end()) return nullptr;
  if (attribute_or<std::string>(node, "auto_pad", "NOTSET") != "NOTSET" ||
      attribute_or<int64_t>(node, "group", 1) != 1 || !all_equal(node, "strides", 1) ||
      !all_equal(node, "dilations", 1) || !all_equal(node, "pads", kernel / 2)) {
    return nullptr;
  }
  if (!cheaper(weight.size(0), weight.size(1), kernel)) return nullptr;
  return std::make_shared<ConvolutionFront>(weight, bias);
}

}  // namespace

SplitHead split_head(const Network& head) {
  const Graph graph = head.graph();
  if (graph.inputs.size() != 1 || graph.nodes.size() < 2 || head.fixed_batch() != kDynamic) {
    return {};
  }
  const Node& node = graph.nodes[0];
  const bool product = (node.op == "Gemm" || node.op == "Conv") && node.domain.empty() &&
                       node.inputs.size() >= 2 && node.inputs[0] == graph.inputs[0].name;
  if (!product || find_leak(graph, node.outputs[0])) return {};
  const auto constant = [&](size_t i) {
    const auto found =
        i < node.inputs.size() ? graph.initializers.find(node.inputs[i]) : graph.initializers.end();
    return found == graph.initializers.end() ? torch::Tensor() : found->second.tensor();
  };
  const bool biased = node.inputs.size() > 2 && !node.inputs[2].empty();
  if (!constant(1).defined() || (biased && !constant(2).defined())) return {};
  if (constant(1).scalar_type() != torch::kFloat) return {};
  const torch::Tensor weight = constant(1).to(head.device());
  const torch::Tensor bias = biased ? constant(2).to(head.device()) : torch::Tensor();
  SplitHead parts;
  parts.front =
      node.op == "Gemm" ? linear_front(node, weight, bias) : convolution_front(node, weight, bias);
  if (!parts.front) return {};
  TensorInfo behind;
  behind.name = node.outputs[0];
  behind.known_rank = false;
  NetworkOptions options;
  options.device = head.device();
  parts.rest = std::make_shared<const Network>(extract(graph, {behind}, graph.outputs), options);
  return parts;
}

}  // namespace fcp
