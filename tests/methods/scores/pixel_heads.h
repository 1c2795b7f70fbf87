// Small heads over images, as those of segmentation networks, for the tests of pixels.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/nn/graph/graph.h"

#include "tests/methods/scores/heads.h"
#include "tests/nn/graphs.h"

namespace fcp {

constexpr int64_t kPixelSide = 3;  // of the feature; the output has twice as many pixels a side

// feature [N, D, 3, 3] → Conv 3×3 → ReLU → Conv 1×1 → [N, C, 3, 3] → Resize → [N, C, 6, 6].
inline Graph pixel_head(Random& random, int64_t features, int64_t channels) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, features, kPixelSide, kPixelSide})};
  graph.outputs = {make_info("y", {kDynamic, channels, 2 * kPixelSide, 2 * kPixelSide})};
  graph.initializers["w1"] = random_normal(random, {4, features, 3, 3}) * 0.4;
  graph.initializers["b1"] = random_normal(random, {4});
  graph.initializers["w2"] = random_normal(random, {channels, 4, 1, 1});
  graph.initializers["b2"] = random_normal(random, {channels});
  graph.initializers["scales"] = torch::tensor({1.f, 1.f, 2.f, 2.f});
  const std::map<std::string, Attribute> pads = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  graph.nodes = {
      make_node("Conv", {"x", "w1", "b1"}, {"c"}, pads), make_node("Relu", {"c"}, {"h"}),
      make_node("Conv", {"h", "w2", "b2"}, {"l"}),
      make_node("Resize", {"l", "", "scales"}, {"y"}, {{"mode", std::string("linear")}})};
  return graph;
}

// Features at random and truths at any distance from the prediction, other for each output.
inline HeadRows pixel_rows(Random& random, const Network& head, int64_t rows) {
  const std::vector<int64_t>& shape = head.inputs()[0].shape;
  HeadRows made;
  made.features = random_normal(random, {rows, shape[1], shape[2], shape[3]}).abs();
  torch::NoGradGuard no_gradients;
  const torch::Tensor prediction = head.run({made.features})[0].flatten(1);
  const torch::Tensor error = random_normal(random, prediction.sizes().vec());
  made.truth = (prediction + error * error * error).to(torch::kFloat).to(torch::kDouble);
  return made;
}

}  // namespace fcp
