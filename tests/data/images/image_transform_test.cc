#include "fcp/data/images/image_transform.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;

Image grey_image(int height, int width, std::vector<uint8_t> pixels) {
  return {height, width, 1, std::move(pixels)};
}

Image noise_image(int height, int width) {
  Image image = blank_image(height, width, 3);
  Random random(11);
  for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random.below(256));
  return image;
}

TEST(ImageTransform, ResizesLiterals) {
  // Halving: the triangle over four pixels, weights 1 3 3 1 inside, 3 3 1 at the edge.
  // (3·10 + 3·20 + 30) / 7 = 17.14, (20 + 3·30 + 3·40) / 7 = 32.86.
  EXPECT_THAT(resize_bilinear(grey_image(1, 4, {10, 20, 30, 40}), 1, 2).pixels,
              ElementsAre(17, 33));
  EXPECT_THAT(resize_bilinear(grey_image(4, 1, {10, 20, 30, 40}), 2, 1).pixels,
              ElementsAre(17, 33));
  // Doubling: quarter points, edges repeated.
  EXPECT_THAT(resize_bilinear(grey_image(1, 2, {0, 100}), 1, 4).pixels,
              ElementsAre(0, 25, 75, 100));
  EXPECT_THAT(resize_nearest(grey_image(1, 4, {1, 2, 3, 4}), 2, 2).pixels, ElementsAre(2, 4, 2, 4));
  EXPECT_THAT(resize_nearest(grey_image(2, 1, {7, 9}), 3, 1).pixels, ElementsAre(7, 9, 9));
}

// The equation in the header, in double precision and without rounding in between.
double slow_resized(const Image& image, int height, int width, int y, int x, int c) {
  const auto weight = [](int in, int out, int i, int j) {
    const double scale = static_cast<double>(in) / out;
    return std::max(0.0, 1 - std::abs(j + 0.5 - (i + 0.5) * scale) / std::max(scale, 1.0));
  };
  double sum = 0, total = 0;
  for (int v = 0; v < image.height; ++v) {
    for (int u = 0; u < image.width; ++u) {
      const double w = weight(image.height, height, y, v) * weight(image.width, width, x, u);
      sum += w * image.row(v)[u * 3 + c];
      total += w;
    }
  }
  return sum / total;
}

TEST(ImageTransform, ResizesAsTheEquationSays) {
  const Image image = noise_image(13, 17);
  for (const auto [height, width] : {std::array{5, 7}, {13, 40}, {30, 17}, {29, 3}, {1, 1}}) {
    const Image out = resize_bilinear(image, height, width);
    ASSERT_EQ(out.pixels.size(), static_cast<size_t>(height * width * 3));
    for (int i = 0; i < height * width * 3; ++i) {
      const double exact = slow_resized(image, height, width, i / 3 / width, i / 3 % width, i % 3);
      // Half a grey level for each pass.
      ASSERT_NEAR(out.pixels[static_cast<size_t>(i)], exact, 1.01);
    }
  }
}

TEST(ImageTransform, KeepsAnEvenColour) {
  Image even = blank_image(31, 47, 3);
  std::fill(even.pixels.begin(), even.pixels.end(), uint8_t{201});
  for (const int size : {5, 31, 64}) {
    for (const uint8_t byte : resize_short_side(even, size).pixels) ASSERT_EQ(byte, 201);
  }
}

TEST(ImageTransform, ShortSideKeepsTheProportion) {
  const auto size = [](int height, int width, int wanted) {
    const Image out = resize_short_side(blank_image(height, width, 1), wanted);
    return std::pair(out.height, out.width);
  };
  EXPECT_EQ(size(375, 500, 256), std::pair(256, 341));  // 341.33
  EXPECT_EQ(size(500, 333, 256), std::pair(384, 256));  // 384.38
  EXPECT_EQ(size(10, 10, 7), std::pair(7, 7));
}

TEST(ImageTransform, CropsTheMiddle) {
  // 5 to 2: (5 − 2) / 2 = 1.5, to even 2. 7 to 2: 2.5, to even 2.
  EXPECT_THAT(center_crop(grey_image(1, 5, {1, 2, 3, 4, 5}), 1, 2).pixels, ElementsAre(3, 4));
  EXPECT_THAT(center_crop(grey_image(7, 1, {1, 2, 3, 4, 5, 6, 7}), 2, 1).pixels, ElementsAre(3, 4));
  // Smaller: the odd zero comes last; the other axis is still cropped.
  EXPECT_THAT(center_crop(grey_image(2, 2, {1, 2, 3, 4}), 2, 5).pixels,
              ElementsAre(0, 1, 2, 0, 0, 0, 3, 4, 0, 0));
  EXPECT_THAT(center_crop(grey_image(1, 3, {1, 2, 3}), 3, 1).pixels, ElementsAre(0, 2, 0));
}

TEST(ImageTransform, NormalisesToPlanes) {
  const Image image{1, 2, 3, {255, 0, 51, 0, 255, 102}};
  const Array out = transform_image(
      {.resize = 0, .crop = 0, .mean = {0.5f, 0, 0.2f}, .deviation = {0.5f, 2, 0.1f}}, image);
  EXPECT_THAT(out.shape, ElementsAre(3, 1, 2));
  const std::vector<float> expected = {1, -1, 0, 0.5, 0, 2};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(out.values[i], expected[i], 1e-6) << i;
}

TEST(ImageTransform, KnowsItsSizeBeforehand) {
  const std::array<int, 2> unknown = {0, 0}, given = {30, 60};
  EXPECT_THAT(transformed_size({}, unknown), ElementsAre(224, 224));
  EXPECT_THAT(transformed_size({.resize = 20, .crop = 0}, unknown), ElementsAre(0, 0));
  for (const ImageTransform& transform : {ImageTransform{},
                                          {.resize = 20, .crop = 0},
                                          {.resize = 0, .crop = 0},
                                          {.resize = 0, .size = {9, 8}, .crop = 0},
                                          {.resize = 0, .size = {9, 8}, .crop = 5}}) {
    const Array out = transform_image(transform, blank_image(30, 60, 3));
    const auto [height, width] = transformed_size(transform, given);
    EXPECT_THAT(out.shape, ElementsAre(3, height, width));
  }
}

TEST(ImageTransform, RefusesWhatMakesNoSense) {
  const Folder folder;
  const auto checking = [&](const ImageTransform& transform) {
    return message_of(folder, [&] { check_transform(transform); });
  };
  EXPECT_EQ(checking({}), "");
  EXPECT_EQ(checking({.resize = -1}),
            "image transform: resize -1, size 0 x 0, crop 224, expected positive sizes, or 0 for "
            "none");
  EXPECT_EQ(checking({.size = {3, 4}}),
            "image transform: resize 256 and size 3 x 4 are both given, expected one of them");
  EXPECT_EQ(checking({.deviation = {1, 0, 1}}), "image transform: a deviation is 0, expected > 0");
  EXPECT_EQ(
      message_of(folder, [] { resize_short_side(blank_image(1, 1000, 3), 1 << 20); }),
      "resized image: the image is 134217728 x 1048576 pixels, expected 1 to 134217728 in all");
}

}  // namespace
namespace {

TEST(ImageText, TransformComesBack) {
  ImageTransform before;
  before.resize = 0;
  before.size = {12, 34};
  before.crop = 7;
  before.mean = {0.1f, 0.2f, 1.0f / 3};
  before.deviation = {1, 2, 0.5f};
  const ImageTransform after = parse_transform(transform_text(before));
  EXPECT_EQ(after.resize, before.resize);
  EXPECT_EQ(after.size, before.size);
  EXPECT_EQ(after.crop, before.crop);
  EXPECT_EQ(after.mean, before.mean);
  EXPECT_EQ(after.deviation, before.deviation);
}

TEST(ImageText, DamageIsAnError) {
  const std::string text = transform_text({});
  EXPECT_THROW(parse_transform(text.substr(1)), Error);
  EXPECT_THROW(parse_transform("{}"), Error);
  std::string huge = text;
  huge.replace(huge.find("256"), 3, "1e99");
  EXPECT_THROW(parse_transform(huge), Error);
  EXPECT_THROW(parse_class_names("{\"a\":1}"), Error);
  EXPECT_THROW(parse_class_names("[\"a\",1]"), Error);
}

TEST(ImageText, ClassNamesComeBack) {
  const std::vector<std::string> names = {"cat", "dog \"x\"", "Käfer"};
  EXPECT_EQ(parse_class_names(class_names_text(names)), names);
}

}  // namespace
}  // namespace fcp
