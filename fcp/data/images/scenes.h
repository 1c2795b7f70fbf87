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

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

}  // namespace fcp
