// Street-like pictures with a label for every pixel, made of random numbers: a miniature of
// segmentation data for tests and demonstrations.
//
// A scene is painted from far to near: sky, buildings, sidewalk and road that narrow towards a
// vanishing point, then trees, cars and people in the size that their distance gives them, and the
// bonnet of the car that takes the picture, which has no label. Every pixel is the mean of nine
// samples, so that colours mix at the borders of objects as they do in photographs, while its label
// is that of its middle; lighting, colours, texture and noise vary.
//
// A scene depends on the seed and its index alone, and scenes of one seed are independent draws
// from one distribution: exchangeable, as calibration assumes.
// Tested by tests/data/images/scenes_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/data/images/image.h"
#include "fcp/data/images/segmentation.h"

namespace fcp {

enum SceneClass : uint8_t {
  kUnlabelled,
  kRoad,
  kSidewalk,
  kBuilding,
  kSky,
  kCar,
  kPerson,
  kTree,
  kSceneClasses  // how many
};

// By class: "unlabelled", "road", …
const std::vector<std::string>& scene_class_names();

using Scene = SegmentationSample;

struct SceneOptions {
  int height = 64;
  int width = 128;
  double noise = 0.02;  // standard deviation of a pixel's colour, in [0, 1]
};

Scene make_scene(uint64_t seed, uint64_t index, const SceneOptions& options = {});

struct SceneCounts {
  size_t train = 200;
  size_t calibration = 200;
  size_t test = 100;

  size_t all() const { return train + calibration + test; }
};

// Scenes 0, 1, … of the seed into a folder of the plain layout (segmentation.h): images/, labels/
// and split.csv with the folds train, calibration and test; and classes.txt, the names of the
// classes. Folders are made where they are missing. `written` is called after every scene.
void write_scenes(const std::string& folder, uint64_t seed, const SceneCounts& counts = {},
                  const SceneOptions& options = {}, const std::function<void()>& written = {});

// What scenes are painted on: colours and labels at three times three samples per pixel. Lengths
// are in pixels, from the upper left corner. Tested by tests/data/images/scenes_test.cc.

using Colour = std::array<double, 3>;  // red, green, blue in [0, 1]

struct SceneBox {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// Whether a point lies in the ellipse that touches the sides of the box.
inline bool in_ellipse(const SceneBox& box, double x, double y) {
  const double across = (2 * x - box.left - box.right) / (box.right - box.left);
  const double down = (2 * y - box.top - box.bottom) / (box.bottom - box.top);
  return across * across + down * down <= 1;
}

class SceneCanvas {
 public:
  SceneCanvas(int height, int width)
      : height_(height),
        width_(width),
        colours_(static_cast<size_t>(height * width * kSamples * kSamples)),
        labels_(colours_.size()) {}

  // Gives the label to all samples of the box for which inside(x, y), and the colour(x, y).
  template <typename Inside, typename Paint>
  void paint(const SceneBox& box, uint8_t label, Inside inside, Paint colour) {
    const auto first = [](double at) { return std::max(0, to_sample(at)); };
    const int bottom = std::min(height_ * kSamples, to_sample(box.bottom));
    const int right = std::min(width_ * kSamples, to_sample(box.right));
    for (int i = first(box.top); i < bottom; ++i) {
      for (int j = first(box.left); j < right; ++j) {
        const double x = (j + 0.5) / kSamples, y = (i + 0.5) / kSamples;
        if (!inside(x, y)) continue;
        colours_[index(i, j)] = colour(x, y);
        labels_[index(i, j)] = label;
      }
    }
  }

  void paint_box(const SceneBox& box, uint8_t label, const Colour& colour) {
    paint(
        box, label, [](double, double) { return true; }, [&](double, double) { return colour; });
  }
  void paint_ellipse(const SceneBox& box, uint8_t label, const Colour& colour) {
    paint(
        box, label, [&](double x, double y) { return in_ellipse(box, x, y); },
        [&](double, double) { return colour; });
  }

  // The label of every pixel's middle.
  Image labels() const;

  // The mean colour of a pixel times light(x, y), with normal noise of the deviation that noise
  // gives its label.
  template <typename Light, typename Noise>
  Image photograph(Random& random, Light light, Noise noise) const {
    Image image = blank_image(height_, width_, 3);
    for (int y = 0; y < height_; ++y) {
      for (int x = 0; x < width_; ++x) {
        const Colour colour = mean_colour(y, x);
        const double deviation = noise(labels_[middle(y, x)]), brightness = light(x, y);
        const double grain = deviation * random.normal();  // most noise is of all colours alike
        for (size_t channel = 0; channel < 3; ++channel) {
          const double value =
              brightness * colour[channel] + grain + deviation / 2 * random.normal();
          image.row(y)[3 * static_cast<size_t>(x) + channel] =
              static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
        }
      }
    }
    return image;
  }

 private:
  static constexpr int kSamples = 3;  // a pixel and direction; odd, so that one is in the middle

  static int to_sample(double at) { return static_cast<int>(std::lround(at * kSamples)); }
  size_t index(int i, int j) const {
    return static_cast<size_t>(i) * static_cast<size_t>(width_ * kSamples) + static_cast<size_t>(j);
  }
  size_t middle(int y, int x) const {
    return index(y * kSamples + kSamples / 2, x * kSamples + kSamples / 2);
  }
  Colour mean_colour(int y, int x) const;

  int height_;
  int width_;
  std::vector<Colour> colours_;
  std::vector<uint8_t> labels_;
};

}  // namespace fcp
