#include "fcp/training/segmenter.h"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/images/scenes.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kHeight = 32, kWidth = 64;

std::vector<Scene> small_scenes(uint64_t seed, size_t count) {
  std::vector<Scene> scenes;
  for (size_t i = 0; i < count; ++i) {
    scenes.push_back(make_scene(seed, i, {.height = kHeight, .width = kWidth}));
  }
  return scenes;
}

const SegmenterResult& trained_segmenter() {
  static const SegmenterResult result =
      train_segmenter(small_scenes(1, 60),
                      {.classes = kSceneClasses, .epochs = 8, .class_names = scene_class_names()});
  return result;
}

// The image as the metadata of the graph says it is to be read.
torch::Tensor input_for(const Graph& graph, const Image& image) {
  const Array x = transform_image(parse_transform(graph.metadata.at(kImagesKey)), image);
  return torch::tensor(x.values).view({1, 3, image.height, image.width});
}

Image segment(const Network& network, const torch::Tensor& input) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor scored = network.forward(input).narrow(1, 1, kSceneClasses - 1);
  const torch::Tensor best = (scored.argmin(1) + 1).to(torch::kByte).contiguous();
  const auto* const first = best.data_ptr<uint8_t>();
  return {kHeight, kWidth, 1, {first, first + best.numel()}};
}

TEST(Segmenter, LossFallsAndClassesAreWeighted) {
  const SegmenterResult& result = trained_segmenter();
  ASSERT_EQ(result.training_loss.size(), 8u);
  EXPECT_LT(result.training_loss.back(), 0.4 * result.training_loss.front());
  ASSERT_EQ(result.class_weights.size(), size_t{kSceneClasses});
  EXPECT_EQ(result.class_weights[kUnlabelled], 0);
  EXPECT_GT(result.class_weights[kPerson], result.class_weights[kSidewalk]);
}

// The commonest class has about a third of the pixels.
TEST(Segmenter, KnowsPixelsOfUnseenScenes) {
  const Graph& graph = trained_segmenter().graph;
  const Network network(graph);
  std::array<uint64_t, kSceneClasses> counts = {};
  size_t right = 0, all = 0;
  for (const Scene& scene : small_scenes(2, 20)) {
    const Image found = segment(network, input_for(graph, scene.image));
    count_labels(scene.labels, counts);
    for (size_t i = 0; i < found.pixels.size(); ++i) {
      if (scene.labels.pixels[i] == kUnlabelled) continue;
      ++all;
      right += found.pixels[i] == scene.labels.pixels[i];
    }
  }
  const double majority = static_cast<double>(*std::max_element(counts.begin(), counts.end())) /
                          static_cast<double>(all);
  EXPECT_LT(majority, 0.5);
  EXPECT_GT(static_cast<double>(right) / static_cast<double>(all), 0.8);
}

TEST(Segmenter, IsTheSameForTheSameSeed) {
  const std::vector<Scene> scenes = small_scenes(3, 6);
  const auto bytes = [&](uint64_t seed) {
    const SegmenterOptions options{.classes = kSceneClasses, .epochs = 1, .seed = seed};
    return serialize_onnx(train_segmenter(scenes, options).graph);
  };
  const std::string once = bytes(1);
  EXPECT_EQ(once, bytes(1));
  EXPECT_NE(once, bytes(2));
}

TEST(Segmenter, SurvivesOnnxAndCutsAtItsFeature) {
  const Graph& graph = trained_segmenter().graph;
  const Graph again = parse_onnx(serialize_onnx(graph), "again");
  const torch::Tensor input = input_for(graph, small_scenes(2, 1)[0].image);
  const torch::Tensor output = Network(graph).forward(input);
  EXPECT_THAT(output.sizes().vec(), ElementsAre(1, int{kSceneClasses}, kHeight, kWidth));
  EXPECT_TRUE(torch::equal(Network(again).forward(input), output));
  EXPECT_EQ(parse_class_names(again.metadata.at(kClassesKey)), scene_class_names());
  const CutGraph parts = cut(again, "feature");
  const torch::Tensor feature = Network(parts.backbone).forward(input);
  EXPECT_THAT(feature.sizes().vec(), ElementsAre(1, 24, kHeight / 2, kWidth / 2));
  EXPECT_TRUE(torch::allclose(Network(parts.head).forward(feature), output));
  EXPECT_THAT(valid_cuts(graph), testing::IsSupersetOf({"image", "feature", "logits"}));
}

// What is trained is what is written: forward() and the graph agree, for weights not trained too.
TEST(SegmenterNetwork, ForwardIsItsGraph) {
  SegmenterNetwork network(5, 3, 1);
  network.set_last_bias(std::array{1.0f, 2.0f, 3.0f});
  const torch::Tensor images = torch::linspace(-2, 2, 2 * 3 * 6 * 10).view({2, 3, 6, 10});
  const torch::Tensor output = network.forward(images);
  const torch::Tensor found = Network(network.graph(6, 10)).forward(images);
  EXPECT_TRUE(torch::allclose(found, output, 1e-5, 1e-5));
  const torch::Tensor gradient = torch::autograd::grad({output.sum()}, {network.flat()})[0];
  EXPECT_THAT(gradient.sizes().vec(),
              ElementsAre(static_cast<int64_t>(network.parameters().size())));
  const torch::Tensor last = gradient.narrow(0, gradient.size(0) - 3, 3);  // of the last bias
  EXPECT_TRUE(torch::allclose(last, torch::full({3}, 2 * 6 * 10.0f)));
}

TEST(Segmenter, TellsHowFarItIs) {
  const std::vector<Scene> scenes = small_scenes(3, 5);
  const SegmenterOptions options{.classes = kSceneClasses, .channels = 4, .epochs = 2, .batch = 2};
  std::vector<int64_t> batches;
  train_segmenter(scenes, options, [&](const SegmenterStep& step) {
    batches.push_back(10 * step.epoch + step.batch);
    EXPECT_GT(step.loss, 0);
  });
  EXPECT_THAT(batches, ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_EQ(segmenter_steps(5, options), 6);
}

std::string segmenter_error(const std::vector<Scene>& scenes, const SegmenterOptions& options) {
  try {
    train_segmenter(scenes, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Segmenter, NamesWhatIsWrong) {
  std::vector<Scene> scenes = small_scenes(3, 2);
  EXPECT_EQ(segmenter_error({}, {}), "no sample to train a segmenter on");
  EXPECT_THAT(segmenter_error(scenes, {.classes = 3}), HasSubstr("expected 0 to 2"));
  EXPECT_THAT(segmenter_error(scenes, {.batch = 0}), HasSubstr("batches of 0"));
  EXPECT_THAT(segmenter_error(scenes, {.rate = -1}), HasSubstr("learning rate -1"));
  EXPECT_THAT(segmenter_error(scenes, {.classes = 8, .class_names = {"a"}}),
              HasSubstr("1 class names for 8 classes"));
  scenes[1] = make_scene(1, 1, {.height = 16, .width = 16});
  EXPECT_EQ(segmenter_error(scenes, {}),
            "segmenter: image of sample 1 (from 0): 16 x 16 pixels of 3 channels, expected 64 x 32 "
            "of 3");
  EXPECT_THAT(segmenter_error({make_scene(1, 1, {.height = 15, .width = 16})}, {}),
              HasSubstr("images of 16 x 15 pixels, expected even numbers"));
}

}  // namespace
}  // namespace fcp
