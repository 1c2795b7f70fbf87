#include "fcp/search/front_layer.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/search/device_speed.h"

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

namespace {

constexpr int64_t kTile = 8;  // results of a tile, along each side
constexpr int64_t kLeastChannels = 64;
// Numbers of U at a time.
constexpr int64_t kTileNumbersCpu = int64_t{1} << 24, kTileNumbersCuda = int64_t{1} << 28;

int64_t tiles_along(int64_t size) { return (size + kTile - 1) / kTile; }

struct Frequency {
  int64_t y, x;
};

// One of each pair of conjugate frequencies; first the four that are their own.
struct Frequencies {
  std::vector<Frequency> alone, paired;

  explicit Frequencies(int64_t side) {
    for (int64_t y = 0; y < side; ++y) {
      for (int64_t x = 0; x < side; ++x) {
        const int64_t other_y = (side - y) % side, other_x = (side - x) % side;
        const int64_t place = y * side + x, other = other_y * side + other_x;
        if (place == other) alone.push_back({y, x});
        if (place < other) paired.push_back({y, x});
      }
    }
  }
};

// cos and sin of 2π f · place / P: [frequencies, places], of the places (from … to − 1)².
struct Waves {
  torch::Tensor cosines, sines;

  Waves(const std::vector<Frequency>& frequencies, int64_t side, int64_t from, int64_t to) {
    const auto count = static_cast<int64_t>(frequencies.size());
    const torch::Tensor angles = torch::empty({count, (to - from) * (to - from)}, torch::kDouble);
    auto* angle = angles.data_ptr<double>();
    for (const Frequency& f : frequencies) {
      for (int64_t y = from; y < to; ++y) {
        for (int64_t x = from; x < to; ++x) {
          const int64_t turns = (f.y * y + f.x * x) % side;
          *angle++ = 2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(side);
        }
      }
    }
    cosines = angles.cos();
    sines = angles.sin();
  }
};

}  // namespace

bool TileConvolution::pays(const torch::Tensor& weight, const torch::Tensor& images) {
  const int64_t kernel = weight.size(2), side = kTile + kernel - 1;
  const bool wide = kernel >= 3 && std::min(weight.size(0), weight.size(1)) >= kLeastChannels;
  const int64_t places = images.size(2) * images.size(3);
  const int64_t padded = tiles_along(images.size(2)) * tiles_along(images.size(3)) * kTile * kTile;
  const auto numbers = static_cast<size_t>(3 * side * side / 2 * weight.size(0) * weight.size(1));
  return wide && padded <= 2 * places &&
         numbers * static_cast<size_t>(weight.element_size()) <= memory_budget() / 8;
}

TileConvolution::TileConvolution(const torch::Tensor& weight) : side_(kTile + weight.size(2) - 1) {
  const torch::NoGradGuard no_gradients;
  const int64_t kernel = weight.size(2), half = kernel / 2;
  const Frequencies frequencies(side_);
  const Waves alone_in(frequencies.alone, side_, 0, side_);
  const Waves in(frequencies.paired, side_, 0, side_);
  const Waves alone_at(frequencies.alone, side_, -half, half + 1);
  const Waves at(frequencies.paired, side_, -half, half + 1);
  const Waves alone_out(frequencies.alone, side_, half, half + kTile);
  const Waves out(frequencies.paired, side_, half, half + kTile);
  const auto place = [&](const torch::Tensor& matrix) {
    return matrix.to(weight.options()).contiguous();
  };
  // a = cosines · x, b = −sines · x;  c = cosines · w, d = sines · w.
  const torch::Tensor a = in.cosines, b = -in.sines, c = at.cosines, d = at.sines;
  const double share = 1.0 / static_cast<double>(side_ * side_);
  const torch::Tensor whole = share * alone_out.cosines;
  const torch::Tensor real = 2 * share * out.cosines, imaginary = -2 * share * out.sines;
  forward_.analysis = place(torch::cat({alone_in.cosines, a + b, a, b}));
  forward_.synthesis = place(torch::cat({whole, real + imaginary, imaginary, -real}).t());
  // Of conjugates, p₂ = −a (c + d) and p₃ = −b (d − c).
  transpose_.analysis = place(torch::cat({alone_in.cosines, a + b, b, a}));
  transpose_.synthesis = place(torch::cat({whole, real + imaginary, real, -imaginary}).t());
  const torch::Tensor kernels = place(torch::cat({alone_at.cosines, c, d - c, c + d}));
  const torch::Tensor taps = weight.permute({2, 3, 0, 1}).reshape({kernel * kernel, -1});
  weights_ = kernels.mm(taps).reshape({-1, weight.size(0), weight.size(1)});
}

torch::Tensor TileConvolution::forward(const torch::Tensor& x) const {
  return run(x, forward_, weights_);
}

torch::Tensor TileConvolution::transpose(const torch::Tensor& g) const {
  return run(g, transpose_, weights_.transpose(1, 2));
}

// Some images at a time.
torch::Tensor TileConvolution::run(const torch::Tensor& x, const Stages& stages,
                                   const torch::Tensor& weights) const {
  const int64_t tiles = tiles_along(x.size(2)) * tiles_along(x.size(3));
  const int64_t numbers =
      std::max<int64_t>(1, weights.size(0) * std::max(weights.size(1), weights.size(2)) * tiles);
  const int64_t most = x.is_cuda() ? kTileNumbersCuda : kTileNumbersCpu;
  const int64_t images = std::max<int64_t>(1, most / numbers);
  if (images >= x.size(0)) return run_some(x, stages, weights);
  std::vector<torch::Tensor> parts;
  for (int64_t first = 0; first < x.size(0); first += images) {
    const int64_t count = std::min(images, x.size(0) - first);
    parts.push_back(run_some(x.narrow(0, first, count), stages, weights));
  }
  return torch::cat(parts);
}

torch::Tensor TileConvolution::run_some(const torch::Tensor& x, const Stages& stages,
                                        const torch::Tensor& weights) const {
  const int64_t images = x.size(0), height = x.size(2), width = x.size(3);
  const torch::ScalarType type = weights.scalar_type();
  const int64_t down = tiles_along(height), across = tiles_along(width);
  const int64_t half = (side_ - kTile) / 2, tiles = images * down * across;
  const torch::Tensor padded = torch::constant_pad_nd(
      x.to(type), {half, across * kTile - width + half, half, down * kTile - height + half});
  const torch::Tensor inputs = padded.unfold(2, side_, kTile)
                                   .unfold(3, side_, kTile)        // [N, C, down, across, P, P]
                                   .permute({4, 5, 1, 0, 2, 3})    // [P, P, C, N, down, across]
                                   .reshape({side_ * side_, -1});  // [P², C · tiles]
  const torch::Tensor at_frequencies =
      stages.analysis.mm(inputs).reshape({-1, weights.size(2), tiles});
  const torch::Tensor products = torch::bmm(weights, at_frequencies);  // [Q, M, tiles]
  const torch::Tensor results =
      stages.synthesis
          .mm(products.reshape({products.size(0), -1}))  // [64, M · tiles]
          .reshape({kTile, kTile, -1, images, down, across})
          .permute({3, 2, 4, 0, 5, 1})  // [N, M, down, 8, across, 8]
          .reshape({images, -1, down * kTile, across * kTile});
  return results.narrow(2, 0, height).narrow(3, 0, width).to(x.scalar_type()).contiguous();
}

}  // namespace fcp
