#include "fcp/data/images/heat_map.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

constexpr float kEndless = std::numeric_limits<float>::infinity();

// L* of CIELAB: the cube root of the luminance, which is a weighted sum of linear light.
double lightness(const std::array<uint8_t, 3>& colour) {
  const double weights[] = {0.2126, 0.7152, 0.0722};
  double luminance = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double value = colour[i] / 255.0;
    const double light = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
    luminance += weights[i] * light;
  }
  return luminance > 0.008856 ? 116 * std::cbrt(luminance) - 16 : 903.3 * luminance;
}

// To within 2 units, less than an eye can tell.
TEST(HeatMap, LightnessRisesEvenly) {
  constexpr int kSteps = 64;
  for (int i = 0; i <= kSteps; ++i) {
    const float share = static_cast<float>(i) / kSteps;
    EXPECT_NEAR(lightness(heat_colour(share)), 6 + 88 * share, 2) << share;
  }
}

TEST(HeatMap, SpreadsValuesFromLowToHigh) {
  const std::vector<float> values = {-1, 2, 3, 4, 9, std::nanf("")};
  const Image image = heat_map(values, 2, 3, 2, 4);
  ASSERT_EQ(image.pixels.size(), 18u);
  const auto at = [&](size_t i) {
    return std::array{image.pixels[3 * i], image.pixels[3 * i + 1], image.pixels[3 * i + 2]};
  };
  EXPECT_EQ(at(0), heat_colour(0));
  EXPECT_EQ(at(1), heat_colour(0));
  EXPECT_EQ(at(2), heat_colour(0.5));
  EXPECT_EQ(at(3), heat_colour(1));
  EXPECT_EQ(at(4), heat_colour(1));
  EXPECT_THAT(at(5), ElementsAre(128, 128, 128));
  EXPECT_THROW(heat_map(values, 2, 2, 0, 1), Error);
  EXPECT_THROW(heat_map(values, 2, 3, 1, 1), Error);
}

// log(−log p) for p = 0.2, 0.5 and 0.9, and its ends.
TEST(BandUncertainty, IsTheMeanWidthInProbabilities) {
  const auto inverse = [](double p) { return static_cast<float>(std::log(-std::log(p))); };
  const std::vector<float> lower = {inverse(0.9), -kEndless, inverse(0.5), inverse(0.5)};
  const std::vector<float> upper = {inverse(0.2), kEndless, inverse(0.5), inverse(0.2)};
  const std::vector<float> found = band_uncertainty(lower, upper, 2, 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0], (0.7 + 0) / 2, 1e-6);
  EXPECT_NEAR(found[1], (1 + 0.3) / 2, 1e-6);
  EXPECT_THROW(band_uncertainty(lower, upper, 3, 2), Error);
}

TEST(ClassColours, CanBeToldApart) {
  const auto distance = [](int a, int b) {
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) sum += std::pow(class_colour(a)[i] - class_colour(b)[i], 2);
    return std::sqrt(sum);
  };
  for (int a = 0; a < 20; ++a) {
    for (int b = 0; b < a; ++b) EXPECT_GT(distance(a, b), 30) << a << " and " << b;
  }
  EXPECT_THAT(class_colour(0), ElementsAre(0, 0, 0));
  EXPECT_THAT(class_colour(9, "road"), ElementsAre(128, 64, 128));
  EXPECT_EQ(class_colour(9, "a road"), class_colour(9));
  const Image coloured = colour_labels({1, 2, 1, {0, 5}});
  EXPECT_THAT(coloured.pixels,
              ElementsAre(0, 0, 0, class_colour(5)[0], class_colour(5)[1], class_colour(5)[2]));
}

TEST(SideBySide, PutsGreyBetween) {
  const Image colour = {2, 1, 3, {1, 2, 3, 4, 5, 6}};
  const Image grey = {2, 2, 1, {7, 8, 9, 10}};
  const Image all = side_by_side(std::array{colour, grey}, 1);
  EXPECT_EQ(all.width, 4);
  EXPECT_EQ(all.height, 2);
  EXPECT_THAT(all.pixels, ElementsAre(1, 2, 3, 128, 128, 128, 7, 7, 7, 8, 8, 8,  //
                                      4, 5, 6, 128, 128, 128, 9, 9, 9, 10, 10, 10));
  EXPECT_EQ(side_by_side(std::array{colour}).pixels, colour.pixels);
  EXPECT_THROW(side_by_side(std::array{colour, blank_image(3, 1, 3)}), Error);
  EXPECT_THROW(side_by_side({}), Error);
}

TEST(HeatMap, ColoursOfNamedClasses) {
  const std::vector<std::string> names = {"unlabeled", "sky"};
  EXPECT_THAT(colour_labels({1, 3, 1, {0, 1, 2}}, names).pixels,
              ElementsAre(0, 0, 0, 70, 130, 180, class_colour(2)[0], class_colour(2)[1],
                          class_colour(2)[2]));
}

TEST(HeatMap, MarkedPixelsAreRedOnGrey) {
  const std::vector<uint8_t> marks = {0, 1};
  EXPECT_THAT(mark_pixels({1, 2, 3, {0, 90, 180, 1, 2, 3}}, marks).pixels,
              ElementsAre(173, 173, 173, 200, 0, 40));
  EXPECT_THROW(mark_pixels({1, 1, 3, {0, 0, 0}}, marks), Error);
}

}  // namespace
}  // namespace fcp
