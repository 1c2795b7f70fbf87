#include "fcp/data/images/heat_map.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using PixelColour = std::array<uint8_t, 3>;

// L* = 6, 17, 28, …, 94; the hue turns from blue through red to yellow, as strong as a screen can.
constexpr std::array<PixelColour, 9> kHeat = {{{1, 18, 49},
                                               {1, 29, 122},
                                               {103, 26, 137},
                                               {174, 12, 122},
                                               {220, 52, 93},
                                               {241, 105, 69},
                                               {254, 151, 64},
                                               {255, 197, 97},
                                               {255, 237, 178}}};
constexpr uint8_t kGrey = 128;
constexpr PixelColour kMarked = {200, 0, 40};

// The colours in which Cityscapes shows its classes, and two names of the generated scenes.
struct NamedColour {
  std::string_view name;
  PixelColour colour;
};
constexpr NamedColour kStreetColours[] = {{"unlabeled", {0, 0, 0}},
                                          {"unlabelled", {0, 0, 0}},
                                          {"road", {128, 64, 128}},
                                          {"sidewalk", {244, 35, 232}},
                                          {"building", {70, 70, 70}},
                                          {"wall", {102, 102, 156}},
                                          {"fence", {190, 153, 153}},
                                          {"pole", {153, 153, 153}},
                                          {"traffic_light", {250, 170, 30}},
                                          {"traffic_sign", {220, 220, 0}},
                                          {"vegetation", {107, 142, 35}},
                                          {"tree", {107, 142, 35}},
                                          {"terrain", {152, 251, 152}},
                                          {"sky", {70, 130, 180}},
                                          {"person", {220, 20, 60}},
                                          {"rider", {255, 0, 0}},
                                          {"car", {0, 0, 142}},
                                          {"truck", {0, 0, 70}},
                                          {"bus", {0, 60, 100}},
                                          {"train", {0, 80, 100}},
                                          {"motorcycle", {0, 0, 230}},
                                          {"bicycle", {119, 11, 32}}};

uint8_t colour_byte(double value) {
  return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
}

void put_colour(Image& image, size_t pixel, const PixelColour& colour) {
  std::copy(colour.begin(), colour.end(),
            image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * pixel));
}

double probability(float value) { return std::exp(-std::exp(static_cast<double>(value))); }

}  // namespace

PixelColour heat_colour(float share) {
  if (std::isnan(share)) return {kGrey, kGrey, kGrey};
  const double at = std::clamp(static_cast<double>(share), 0.0, 1.0) * (kHeat.size() - 1);
  const size_t below = std::min(static_cast<size_t>(at), kHeat.size() - 2);
  const double weight = at - static_cast<double>(below);
  PixelColour colour;
  for (size_t i = 0; i < 3; ++i) {
    colour[i] = colour_byte((1 - weight) * kHeat[below][i] + weight * kHeat[below + 1][i]);
  }
  return colour;
}

Image heat_map(std::span<const float> values, int height, int width, float low, float high) {
  Image image = blank_image(height, width, 3);
  if (3 * values.size() != image.pixels.size() || !(low < high)) {
    fail("heat map: ", values.size(), " values from ", low, " to ", high, " for ", width, " x ",
         height, " pixels");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    put_colour(image, i, heat_colour((values[i] - low) / (high - low)));
  }
  return image;
}

std::vector<float> band_uncertainty(std::span<const float> lower, std::span<const float> upper,
                                    size_t channels, size_t pixels) {
  if (channels == 0 || lower.size() != channels * pixels || upper.size() != lower.size()) {
    fail("uncertainty: ", lower.size(), " lower and ", upper.size(), " upper ends, expected ",
         channels, " for each of ", pixels, " pixels");
  }
  std::vector<double> sums(pixels);
  for (size_t i = 0; i < lower.size(); ++i) {
    sums[i % pixels] += std::abs(probability(lower[i]) - probability(upper[i]));
  }
  std::vector<float> means(pixels);
  std::transform(sums.begin(), sums.end(), means.begin(), [&](double sum) {
    return static_cast<float>(sum / static_cast<double>(channels));
  });
  return means;
}

PixelColour class_colour(int label, std::string_view name) {
  for (const NamedColour& known : kStreetColours) {
    if (known.name == name) return known.colour;
  }
  if (label == 0) return {0, 0, 0};
  // Steps of the golden angle never come near a hue that was there shortly before; the brightness
  // has a period of three.
  const double hue = std::fmod(0.58 + 0.381966 * label, 1.0) * 6;
  const double brightness = 230 - 45 * (label % 3);
  PixelColour colour;
  for (size_t i = 0; i < 3; ++i) {
    const double away = std::abs(std::fmod(hue + 6 - 2 * static_cast<double>(i), 6) - 3);
    colour[i] = colour_byte(brightness * (0.25 + 0.75 * std::clamp(away - 1, 0.0, 1.0)));
  }
  return colour;
}

Image colour_labels(const Image& labels, std::span<const std::string> names) {
  if (labels.channels != 1) fail("labels: ", labels.channels, " channels, expected 1");
  std::array<PixelColour, 256> colours;
  for (size_t i = 0; i < colours.size(); ++i) {
    colours[i] =
        class_colour(static_cast<int>(i), i < names.size() ? names[i] : std::string_view());
  }
  Image image = blank_image(labels.height, labels.width, 3);
  for (size_t i = 0; i < labels.pixels.size(); ++i) {
    put_colour(image, i, colours[labels.pixels[i]]);
  }
  return image;
}

Image mark_pixels(const Image& image, std::span<const uint8_t> marks) {
  const auto channels = static_cast<size_t>(image.channels);
  if (channels == 0 || image.pixels.size() != channels * marks.size()) {
    fail("marks: ", marks.size(), ", expected one for each of ", image.width, " x ", image.height,
         " pixels");
  }
  Image marked = blank_image(image.height, image.width, 3);
  for (size_t i = 0; i < marks.size(); ++i) {
    unsigned sum = 0;
    for (size_t c = 0; c < channels; ++c) sum += image.pixels[i * channels + c];
    const auto grey = static_cast<uint8_t>(128 + sum / (2 * channels));
    put_colour(marked, i, marks[i] != 0 ? kMarked : PixelColour{grey, grey, grey});
  }
  return marked;
}

Image side_by_side(std::span<const Image> images, int gap) {
  if (images.empty() || gap < 0)
    fail(images.size(), " images side by side, ", gap, " pixels apart");
  int width = -gap;
  for (const Image& image : images) {
    width += image.width + gap;
    if (image.height != images[0].height || (image.channels != 1 && image.channels != 3)) {
      fail("images side by side: ", image.height, " rows of ", image.channels,
           " channels, expected ", images[0].height, " of 1 or 3");
    }
  }
  Image all = blank_image(images[0].height, width, 3);
  std::fill(all.pixels.begin(), all.pixels.end(), kGrey);
  for (int y = 0; y < all.height; ++y) {
    uint8_t* out = all.row(y);
    for (const Image& image : images) {
      const uint8_t* const in = image.row(y);
      for (int x = 0; x < image.width; ++x) {
        for (int i = 0; i < 3; ++i) out[3 * x + i] = in[image.channels == 3 ? 3 * x + i : x];
      }
      if (&image != &images.back()) out += 3 * (image.width + gap);
    }
  }
  return all;
}

}  // namespace fcp
