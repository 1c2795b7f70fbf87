#include "fcp/search/tile_convolution.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/memory.h"

namespace fcp {
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
