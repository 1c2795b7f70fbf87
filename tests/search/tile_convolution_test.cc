// Convolutions by tiles against libtorch's direct ones in double precision.
#include "fcp/search/tile_convolution.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"

namespace fcp {
namespace {

double largest_error(const torch::Tensor& found, const torch::Tensor& exact) {
  return (found.to(torch::kDouble) - exact).abs().max().item<double>() /
         exact.square().mean().sqrt().item<double>();
}

// Sizes that tiles fill and that they do not, one place, kernels of 3 and 5. Errors are relative to
// the mean size of a result; direct float32 has about 2e-6.
TEST(TileConvolution, IsTheConvolutionAndItsTranspose) {
  torch::manual_seed(4);
  for (const int64_t kernel : {3, 5}) {
    const torch::Tensor weight = torch::randn({6, 9, kernel, kernel});
    const TileConvolution tiles(weight);
    for (const auto& [height, width] : {std::pair{8, 16}, {11, 5}, {1, 1}, {17, 24}}) {
      SCOPED_TRACE(testing::Message() << kernel << ": " << height << " × " << width);
      const torch::Tensor x = torch::randn({3, 9, height, width});
      const torch::Tensor g = torch::randn({3, 6, height, width});
      const torch::Tensor w = weight.to(torch::kDouble);
      EXPECT_LT(largest_error(tiles.forward(x),
                              torch::conv2d(x.to(torch::kDouble), w, {}, 1, kernel / 2)),
                5e-6);
      EXPECT_LT(largest_error(tiles.transpose(g),
                              torch::conv_transpose2d(g.to(torch::kDouble), w, {}, 1, kernel / 2)),
                5e-6);
    }
  }
}

// Whatever the number of terms: the root mean square of the error is about 4e-7 of that of the
// results, where a direct sum in float32 has 2e-7 to 1e-6, and nothing in double precision.
TEST(TileConvolution, IsAccurateForManyChannels) {
  torch::manual_seed(5);
  const torch::Tensor weight = torch::randn({64, 300, 3, 3});
  const torch::Tensor x = torch::randn({7, 300, 16, 16}).relu();
  ASSERT_TRUE(TileConvolution::pays(weight, x));
  const torch::Tensor exact =
      torch::conv2d(x.to(torch::kDouble), weight.to(torch::kDouble), {}, 1, 1);
  const auto error = [&](const torch::Tensor& found) {
    return ((found.to(torch::kDouble) - exact).square().mean() / exact.square().mean())
        .sqrt()
        .item<double>();
  };
  EXPECT_LT(error(TileConvolution(weight).forward(x)), 1e-6);
  const torch::Tensor rounded = TileConvolution(weight.to(torch::kDouble)).forward(x);
  EXPECT_EQ(rounded.scalar_type(), torch::kFloat);
  EXPECT_LT(error(rounded), 4e-8);  // half a unit in the last place of float32
}

TEST(TileConvolution, PaysForWideLayersAndLargeImages) {
  const torch::Tensor wide = torch::empty({64, 64, 3, 3}), narrow = torch::empty({64, 32, 3, 3});
  EXPECT_TRUE(TileConvolution::pays(wide, torch::empty({1, 64, 16, 16})));
  EXPECT_FALSE(TileConvolution::pays(wide, torch::empty({1, 64, 4, 4})));
  EXPECT_FALSE(TileConvolution::pays(narrow, torch::empty({1, 32, 16, 16})));
  EXPECT_FALSE(TileConvolution::pays(torch::empty({64, 64, 1, 1}), torch::empty({1, 64, 16, 16})));
  set_memory_budget(1 << 20);
  EXPECT_FALSE(TileConvolution::pays(wide, torch::empty({1, 64, 16, 16})));
  set_memory_budget(0);
}

}  // namespace
}  // namespace fcp
