#include "fcp/data/images/scenes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/data/images/segmentation.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SceneCanvas, LabelsAreOfMiddlesAndColoursOfMeans) {
  SceneCanvas canvas(1, 3);
  canvas.paint_box({0, 0, 3, 1}, 1, {1, 1, 1});
  canvas.paint_box({0, 0, 1. / 3, 1}, 2, {0, 0, 0});  // a third of the first pixel: not its middle
  canvas.paint_box({2 - 2. / 3, -5, 7, 1}, 3,
                   {0.4, 0.8, 0});  // two thirds of the second, the third
  EXPECT_THAT(canvas.labels().pixels, ElementsAre(1, 3, 3));
  Random random(1);
  const Image image = canvas.photograph(
      random, [](int x, int) { return x == 2 ? 0.5 : 1; }, [](uint8_t) { return 0.0; });
  EXPECT_THAT(image.pixels, ElementsAre(170, 170, 170, 153, 221, 85, 51, 102, 0));
}

TEST(SceneCanvas, EllipsesTouchTheSidesOfTheirBox) {
  SceneCanvas canvas(9, 9);
  canvas.paint_ellipse({1, 2, 8, 7}, 1, {});
  const Image labels = canvas.labels();
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 9; ++x) {
      const double across = (x + 0.5 - 4.5) / 3.5, down = (y + 0.5 - 4.5) / 2.5;
      EXPECT_EQ(labels.row(y)[x], std::hypot(across, down) <= 1) << y << ", " << x;
    }
  }
}

TEST(Scenes, AreTheSameForTheSameSeedAndIndex) {
  const Scene scene = make_scene(1, 2);
  EXPECT_EQ(scene.image.pixels, make_scene(1, 2).image.pixels);
  EXPECT_EQ(scene.labels.pixels, make_scene(1, 2).labels.pixels);
  EXPECT_NE(scene.labels.pixels, make_scene(1, 3).labels.pixels);
  EXPECT_NE(scene.labels.pixels, make_scene(2, 2).labels.pixels);
}

TEST(Scenes, HaveTheSizeAskedForAndEveryClass) {
  std::array<uint64_t, kSceneClasses> counts = {};
  for (uint64_t i = 0; i < 40; ++i) {
    const Scene scene = make_scene(1, i);
    EXPECT_EQ(scene.image.height, 64);
    EXPECT_EQ(scene.image.width, 128);
    EXPECT_EQ(scene.image.pixels.size(), 64u * 128 * 3);
    EXPECT_EQ(scene.labels.pixels.size(), 64u * 128);
    count_labels(scene.labels, counts);
  }
  EXPECT_THAT(counts, Each(testing::Gt(40 * 64 * 128 / 100u)));  // 1 % of the pixels
  const Scene large = make_scene(1, 0, {.height = 32, .width = 80});
  EXPECT_EQ(large.labels.height, 32);
  EXPECT_EQ(large.image.width, 80);
  EXPECT_EQ(scene_class_names().size(), size_t{kSceneClasses});
}

// The road widens towards the camera, the sky is above, the bonnet is a thin strip at the bottom.
TEST(Scenes, LookLikeStreets) {
  for (uint64_t i = 0; i < 20; ++i) {
    const Image labels = make_scene(3, i).labels;
    const auto in_row = [&](int y, int label) {
      return std::count(labels.row(y), labels.row(y) + labels.width, label);
    };
    for (int y = 0; y < 20; ++y) EXPECT_EQ(in_row(y, kRoad) + in_row(y, kSidewalk), 0) << i;
    for (int y = 34; y < 64; ++y) EXPECT_EQ(in_row(y, kSky), 0) << i;
    for (int y = 0; y < 58; ++y) EXPECT_EQ(in_row(y, kUnlabelled), 0) << i;
    EXPECT_GT(in_row(63, kUnlabelled), 100) << i;
  }
}

// Statistics of scenes 0 … 199 and 200 … 399 are those of one distribution: the mean share of each
// class differs by less than 6 standard errors, which happens by chance less than once in 1e7.
TEST(Scenes, AreExchangeableOverTheIndex) {
  constexpr size_t kHalf = 200;
  for (int label = 0; label < kSceneClasses; ++label) {
    std::array<double, 2> sum = {}, squares = {};
    for (size_t i = 0; i < 2 * kHalf; ++i) {
      const Image labels = make_scene(5, i, {.height = 16, .width = 32}).labels;
      const double share =
          static_cast<double>(std::count(labels.pixels.begin(), labels.pixels.end(), label)) /
          (16. * 32);
      sum[i / kHalf] += share;
      squares[i / kHalf] += share * share;
    }
    double variance = 0;
    for (size_t half = 0; half < 2; ++half) {
      variance += squares[half] / kHalf - std::pow(sum[half] / kHalf, 2);
    }
    EXPECT_LT(std::abs(sum[0] - sum[1]) / kHalf, 6 * std::sqrt(variance / kHalf)) << label;
  }
}

TEST(Scenes, AreWrittenInThePlainLayout) {
  const Folder folder;
  size_t calls = 0;
  const std::string root = folder.path("a/b");
  write_scenes(root, 7, {.train = 2, .calibration = 1, .test = 1}, {.height = 8, .width = 16},
               [&] { ++calls; });
  EXPECT_EQ(calls, 4u);
  EXPECT_EQ(read_file(root + "/split.csv"),
            "file,fold\nscene_000000,train\nscene_000001,train\nscene_000002,calibration\n"
            "scene_000003,test\n");
  EXPECT_THAT(read_file(root + "/classes.txt"), testing::StartsWith("unlabelled\nroad\n"));
  const SegmentationSet set = open_segmentation(root, kSceneClasses, {"calibration", "test"});
  ASSERT_EQ(set.pairs.size(), 2u);
  const Scene expected = make_scene(7, 3, {.height = 8, .width = 16});
  const Scene found = read_segmentation(set, 1);
  EXPECT_EQ(found.image.pixels, expected.image.pixels);
  EXPECT_EQ(found.labels.pixels, expected.labels.pixels);
}

TEST(Scenes, NameWhatIsWrong) {
  const Folder folder;
  EXPECT_EQ(message_of(folder, [&] { make_scene(1, 1, {.height = 0}); }),
            "scene: the image is 128 x 0 pixels, expected 1 to 134217728 in all");
  EXPECT_EQ(message_of(folder, [&] { make_scene(1, 1, {.noise = -1}); }),
            "scene: noise -1, expected 0 to 1");
  folder.write("file", "");
  EXPECT_THAT(message_of(folder, [&] { write_scenes(folder.path("file"), 1); }),
              HasSubstr("file/images: cannot make the folder: "));
  EXPECT_EQ(message_of(folder,
                       [&] {
                         write_scenes(folder.path("x"), 1, {0, 0, 0});
                       }),
            "x: no scene to write, expected at least 1");
}

}  // namespace
}  // namespace fcp
