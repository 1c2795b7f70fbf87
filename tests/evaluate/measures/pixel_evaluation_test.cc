#include "fcp/evaluate/measures/pixel_evaluation.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using testing::ElementsAre;

TEST(BoundaryPixels, ByHand) {
  const std::vector<uint8_t> labels = {1, 1, 1, 1, 2, 2,                         //
                                       1, 1, 1, 1, 1, 1,                         //
                                       1, 1, 1, 1, 1, 1,                         //
                                       1, 1, 1, 1, 1, 1};                        //
  EXPECT_THAT(boundary_pixels(labels, 4, 6, 2), ElementsAre(0, 0, 1, 1, 1, 1,    //
                                                            0, 0, 0, 0, 1, 1,    //
                                                            0, 0, 0, 0, 1, 1,    //
                                                            0, 0, 0, 0, 0, 0));  //
  EXPECT_THAT(boundary_pixels(labels, 4, 6, 1), ElementsAre(0, 0, 0, 1, 1, 1,    //
                                                            0, 0, 0, 0, 1, 1,    //
                                                            0, 0, 0, 0, 0, 0,    //
                                                            0, 0, 0, 0, 0, 0));  //
  EXPECT_THROW(boundary_pixels(labels, 4, 5), Error);
}

// Two channels of four pixels: pixel 0 is in, 1 misses by its second channel, 2 by both, 3 is in.
struct MadeUpImage {
  std::array<double, 8> lower = {0, 0, 0, 0, 0, 0, 0, 0};
  std::array<double, 8> upper = {1, 1, 1, 3, 1, 1, 1, 1};
  std::array<double, 8> truth = {0, 1, 2, 3, 1, -0.5, 2, 0.5};
  std::array<double, 8> weights = {0.5, 0, 0, 0.5, 0, 0, 0, 0};
  std::array<uint8_t, 4> boundary = {0, 0, 0, 1};
  std::array<float, 4> uncertainty = {0.25f, 0.5f, 0.75f, 1};

  ImageBands bands() const { return {lower, upper, truth, weights, boundary, uncertainty}; }
};

TEST(PixelEvaluation, BandsByHand) {
  const MadeUpImage image;
  const ImageFigures figures = band_figures(image.bands(), 2);
  EXPECT_EQ(figures.pixels, 4u);
  EXPECT_EQ(figures.pixels_in, 2u);
  EXPECT_EQ(figures.values_in, 5.0 / 8);
  EXPECT_EQ(figures.length(), 10.0 / 8);
  EXPECT_EQ(figures.weighted_length, 2);
  EXPECT_EQ(figures.boundary.mean(), 2);
  EXPECT_EQ(figures.inside.mean(), 1);
  EXPECT_EQ(figures.boundary_uncertainty.mean(), 1);
  EXPECT_EQ(figures.inside_uncertainty.mean(), 0.5);
  EXPECT_TRUE(PixelEvaluator(0.5).covers(figures));
  EXPECT_FALSE(PixelEvaluator(0.51).covers(figures));
  EXPECT_THROW(band_figures(image.bands(), 3), Error);
}

TEST(PixelEvaluation, InfiniteBands) {
  MadeUpImage image;
  image.lower.fill(-std::numeric_limits<double>::infinity());
  image.upper.fill(std::numeric_limits<double>::infinity());
  const ImageFigures figures = band_figures(image.bands(), 2);
  EXPECT_EQ(figures.pixels_in, 4u);
  EXPECT_TRUE(std::isinf(figures.length()));
  EXPECT_TRUE(std::isinf(figures.weighted_length));
}

TEST(PixelEvaluation, SetsByHand) {
  const std::array<bool, 8> members = {true, false, true, true, true, false, false, false};
  const std::array<int64_t, 4> labels = {1, 0, 0, -1};
  const std::array<uint8_t, 4> boundary = {1, 0, 0, 0};
  const ImageFigures figures = set_figures({members, labels, boundary}, 2);
  EXPECT_EQ(figures.pixels, 3u);
  EXPECT_EQ(figures.pixels_in, 2u);
  EXPECT_EQ(figures.boundary.mean(), 2);
  EXPECT_EQ(figures.inside.mean(), 2.0 / 3);
  EXPECT_EQ(figures.length(), 1);
}

TEST(PixelEvaluation, ManyImages) {
  PixelEvaluator evaluator(0.5);
  ImageFigures all{10, 10, 1, 2, {4, 2}, {8, 8}, {1, 2}, {0.5, 8}};
  ImageFigures half{10, 5, 0.75, 4, {0, 0}, {20, 10}, {0, 0}, {1, 10}};
  ImageFigures few{10, 4, 0.5, 6, {6, 1}, {9, 9}, {0.5, 1}, {3, 9}};
  for (const ImageFigures& image : {all, half, few}) evaluator.add(image);
  const PixelEvaluation result = evaluator.finish();
  EXPECT_EQ(result.coverage.covered, 2u);
  EXPECT_EQ(result.whole.covered, 1u);
  EXPECT_EQ(result.coverage.rows, 3u);
  EXPECT_DOUBLE_EQ(result.pixel_coverage, 1.9 / 3);
  EXPECT_DOUBLE_EQ(result.value_coverage, 0.75);
  EXPECT_DOUBLE_EQ(result.length, (1.2 + 2 + 1.5) / 3);
  EXPECT_DOUBLE_EQ(result.weighted_length, 4);
  EXPECT_DOUBLE_EQ(result.boundary_length, 10.0 / 3);
  EXPECT_DOUBLE_EQ(result.inside_length, 37.0 / 27);
  EXPECT_DOUBLE_EQ(result.boundary_uncertainty, 0.5);
  EXPECT_DOUBLE_EQ(result.inside_uncertainty, 4.5 / 27);
  EXPECT_THROW(PixelEvaluator(1).finish(), Error);
}

}  // namespace
}  // namespace fcp
