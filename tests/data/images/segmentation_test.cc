#include "fcp/data/images/segmentation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fcp/base/random.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/images/image_list.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;

void write_at(const Folder& folder, const std::string& name, const Image& image) {
  for (size_t slash = 0; (slash = name.find('/', slash)) != std::string::npos; ++slash) {
    mkdir(folder.path(name.substr(0, slash)).c_str(), 0755);
  }
  write_png(folder.path(name), image);
}

void write_pair(const Folder& folder, const std::string& image, const std::string& labels,
                const std::vector<uint8_t>& values) {
  const int width = static_cast<int>(values.size());
  write_at(folder, image, blank_image(1, width, 3));
  write_at(folder, labels, {1, width, 1, values});
}

std::vector<std::string> names_and_folds(const SegmentationSet& set) {
  std::vector<std::string> all;
  for (const SegmentationPair& pair : set.pairs) all.push_back(pair.fold + ":" + pair.name);
  return all;
}

TEST(Segmentation, OfCityscapes) {
  const Folder folder;
  const auto add = [&](const std::string& split, const std::string& city, const std::string& name,
                       const std::vector<uint8_t>& values) {
    const std::string inner = split + "/" + city + "/" + name;
    write_pair(folder, "leftImg8bit/" + inner + "_leftImg8bit.png",
               "gtFine/" + inner + "_gtFine_labelIds.png", values);
    write_at(folder, "gtFine/" + inner + "_gtFine_instanceIds.png", blank_image(1, 1, 1));
  };
  add("train", "ulm", "ulm_1", {0, 7, 8, 11, 33, 255, 29});
  add("train", "bonn", "bonn_1", {34});
  add("val", "kiel", "kiel_1", {26});
  const SegmentationSet set = open_segmentation(folder.path());
  EXPECT_THAT(names_and_folds(set), ElementsAre("train:bonn_1", "train:ulm_1", "val:kiel_1"));
  EXPECT_EQ(set.classes, 20);
  EXPECT_EQ(set.class_names[14], "car");
  EXPECT_THAT(read_segmentation(set, 1).labels.pixels, ElementsAre(0, 1, 2, 3, 19, 0, 0));
  EXPECT_THAT(read_segmentation(set, 2).labels.pixels, ElementsAre(14));
  EXPECT_EQ(message_of(folder, [&] { read_segmentation(set, 0); }),
            "gtFine/train/bonn/bonn_1_gtFine_labelIds.png: row 0, column 0 (both from 0): found "
            "label 34, which is none of the 20 classes; labels of "
            "leftImg8bit/train/bonn/bonn_1_leftImg8bit.png");
  EXPECT_THAT(names_and_folds(open_segmentation(folder.path(), 20, {"val"})),
              ElementsAre("val:kiel_1"));
}

// Every one of the 19 classes is hit by one label id, all other ids are unlabelled.
TEST(Segmentation, CityscapesHasNineteenClasses) {
  const Folder folder;
  write_pair(folder, "leftImg8bit/a/b/c_leftImg8bit.png", "gtFine/a/b/c_gtFine_labelIds.png", {0});
  const SegmentationSet set = open_segmentation(folder.path());
  std::map<int, int> ids;
  for (const uint8_t label : set.class_of) ++ids[label];
  for (int label = 1; label < 20; ++label) EXPECT_EQ(ids[label], 1) << label;
  EXPECT_EQ(ids[0], 34 - 19 + 1);
  EXPECT_EQ(ids[SegmentationSet::kNoClass], 255 - 34);
}

TEST(Segmentation, OfCamVidFolders) {
  const Folder folder;
  write_pair(folder, "train/b.png", "trainannot/b.png", {3, 11});
  write_pair(folder, "train/a.png", "trainannot/a.png", {0});
  write_pair(folder, "test/c.png", "testannot/c.png", {2});
  const SegmentationSet set = open_segmentation(folder.path(), 12);
  EXPECT_THAT(names_and_folds(set), ElementsAre("test:c", "train:a", "train:b"));
  EXPECT_THAT(read_segmentation(set, 2).labels.pixels, ElementsAre(3, 11));
  EXPECT_THAT(names_and_folds(open_segmentation(folder.path(), 12, {"train"})),
              ElementsAre("train:a", "train:b"));
  EXPECT_THAT(names_and_folds(pair_folders(folder.path("test"), folder.path("testannot"), "x")),
              ElementsAre("x:c"));
  EXPECT_EQ(message_of(folder, [&] { open_segmentation(folder.path(), 12, {"val"}); }),
            folder.path() + ": no pair of image and labels in the folds asked for");
}

TEST(Segmentation, OfImagesLabelsAndASplit) {
  const Folder folder;
  for (const std::string name : {"a", "b", "c"}) {
    write_pair(folder, "images/" + name + ".png", "labels/" + name + ".png", {1, 2});
  }
  EXPECT_THAT(names_and_folds(open_segmentation(folder.path())), ElementsAre(":a", ":b", ":c"));
  folder.write("split.csv", "file,fold\nc,test\na.png,calibration\n");
  EXPECT_THAT(names_and_folds(open_segmentation(folder.path())),
              ElementsAre("test:c", "calibration:a"));
  folder.write("split.csv", "file,fold\nd,test\n");
  EXPECT_EQ(message_of(folder, [&] { open_segmentation(folder.path()); }),
            "split.csv: no image called d in images");
}

TEST(Segmentation, ErrorsNameBothFiles) {
  const Folder folder;
  write_pair(folder, "images/a.png", "labels/a.png", {1, 20});
  const auto opening = [&] {
    return message_of(folder, [&] { open_segmentation(folder.path()); });
  };
  SegmentationSet set = open_segmentation(folder.path());
  EXPECT_EQ(message_of(folder, [&] { read_segmentation(set, 0); }),
            "labels/a.png: row 0, column 1 (both from 0): found label 20, which is none of the 20 "
            "classes; labels of images/a.png");
  write_at(folder, "labels/a.png", blank_image(3, 1, 1));
  EXPECT_EQ(message_of(folder, [&] { read_segmentation(set, 0); }),
            "labels/a.png: 1 x 3 pixels, but images/a.png has 2 x 1");
  write_at(folder, "labels/b.png", blank_image(1, 1, 1));
  EXPECT_EQ(opening(), "labels/b.png: no image called b in images");
  write_at(folder, "images/b.png", blank_image(1, 1, 3));
  write_at(folder, "images/c.png", blank_image(1, 1, 3));
  EXPECT_EQ(opening(), "images/c.png: no labels called c in labels");
  folder.write("images/b.jpg", "");
  EXPECT_EQ(opening(),
            "images/b.png: has the same name as images/b.jpg, expected one image of a name");
  const Folder empty;
  EXPECT_EQ(message_of(empty, [&] { open_segmentation(empty.path()); }),
            empty.path() +
                ": no layout of segmentation data: expected leftImg8bit/ and gtFine/, images/ and "
                "labels/, or NAME/ and NAMEannot/");
  EXPECT_EQ(message_of(folder, [&] { open_segmentation(folder.path(), 256); }),
            "segmentation: 256 classes, expected 1 to 255");
}

TEST(Segmentation, ResizesLabelsWithoutMixingThem) {
  const Folder folder;
  write_pair(folder, "images/a.png", "labels/a.png", {1, 1, 19, 19});
  const SegmentationSample sample = read_segmentation(open_segmentation(folder.path()), 0, {2, 6});
  EXPECT_EQ(sample.image.height, 2);
  EXPECT_EQ(sample.image.width, 6);
  EXPECT_THAT(sample.labels.pixels, ElementsAre(1, 1, 1, 19, 19, 19, 1, 1, 1, 19, 19, 19));
}

TEST(Segmentation, OfRealData) {
  const char* data = std::getenv("FCP_DATA_DIR");
  if (!data) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  if (!is_folder(std::string(data) + "/cityscapes"))
    GTEST_SKIP() << "FCP_DATA_DIR has no cityscapes";
  const SegmentationSet set = open_segmentation(std::string(data) + "/cityscapes");
  std::map<std::string, int> folds;
  for (const SegmentationPair& pair : set.pairs) ++folds[pair.fold];
  EXPECT_EQ(folds["calibration"], 200);
  EXPECT_EQ(folds["test"], 100);
  EXPECT_EQ(set.pairs[0].name, "zurich_000062_000019");
  const SegmentationSample sample = read_segmentation(set, 0);
  EXPECT_EQ(sample.image.width, 512);
  EXPECT_EQ(sample.labels.height, 256);
}

}  // namespace
namespace {

using testing::ElementsAre;

Image random_labels(int height, int width, int classes) {
  Image labels = blank_image(height, width, 1);
  Random random(17);
  for (uint8_t& label : labels.pixels) {
    label = static_cast<uint8_t>(random.below(static_cast<uint64_t>(classes)));
  }
  return labels;
}

// The definition: a weighted mean over the window in double precision.
double slow_blurred(const Image& labels, int label, int y, int x, int kernel, double epsilon) {
  const auto mirror = [](int at, int n) {
    while (at < 0 || at >= n) at = at < 0 ? -at : 2 * (n - 1) - at;
    return at;
  };
  const double sigma = 0.3 * ((kernel - 1) * 0.5 - 1) + 0.8;
  double sum = 0, total = 0;
  for (int v = -(kernel / 2); v <= kernel / 2; ++v) {
    for (int u = -(kernel / 2); u <= kernel / 2; ++u) {
      const double weight = std::exp(-(u * u + v * v) / (2 * sigma * sigma));
      const int found = labels.row(mirror(y + v, labels.height))[mirror(x + u, labels.width)];
      sum += weight * (found == label ? 1 - epsilon : epsilon);
      total += weight;
    }
  }
  return sum / total;
}

TEST(SegmentationTarget, BlursAsTheDefinitionSays) {
  for (const int kernel : {1, 3, 7}) {
    for (const auto [height, width] : {std::array{9, 14}, {2, 3}}) {
      const Image labels = random_labels(height, width, 4);
      const Array all = blurred_labels(
          labels, {.classes = 5, .epsilon = 1e-3f, .kernel = kernel, .drop_unlabelled = false});
      ASSERT_THAT(all.shape, ElementsAre(5, height, width));
      size_t at = 0;
      for (int label = 0; label < 5; ++label) {
        for (int i = 0; i < height * width; ++i) {
          ASSERT_NEAR(all.values[at++],
                      slow_blurred(labels, label, i / width, i % width, kernel, 1e-3), 1e-6);
        }
      }
      const Array some = blurred_labels(labels, {.classes = 5, .epsilon = 1e-3f, .kernel = kernel});
      EXPECT_THAT(some.shape, ElementsAre(4, height, width));
      EXPECT_TRUE(
          std::equal(some.values.begin(), some.values.end(), all.values.begin() + height * width));
    }
  }
}

TEST(SegmentationTarget, HasTheNumbersOfTheAuthorsCode) {
  const Image even{32, 32, 1, std::vector<uint8_t>(1024, 1)};
  const Array target = segmentation_target(even, {.classes = 3});
  for (size_t i = 0; i < 1024; ++i) {
    ASSERT_NEAR(target.values[i], -13.745160, 1e-5);       // 18 · 2⁻²⁴ below 1
    ASSERT_NEAR(target.values[1024 + i], 2.625792, 1e-5);  // log(−log 1e-6)
  }
}

TEST(SegmentationTarget, ComesBack) {
  std::vector<float> values = {1e-6f, 0.1f, 0.1f, 0.5f, 0.99f};
  const std::vector<float> before = values;
  double_log(values);
  EXPECT_FLOAT_EQ(values[3], std::log(std::log(2.f)));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(std::exp(-std::exp(values[i])) / before[i], 1, 1e-5);
  }
}

TEST(SegmentationTarget, WeighsClassesAsENetDoes) {
  std::vector<uint64_t> counts(3);
  count_labels({1, 4, 1, {0, 1, 1, 0}}, counts);
  count_labels({1, 4, 1, {1, 1, 1, 1}}, counts);
  EXPECT_THAT(counts, ElementsAre(2, 6, 0));
  const std::vector<double> weights = enet_weights(counts);
  EXPECT_NEAR(weights[0], 1 / std::log(1.27), 1e-12);
  EXPECT_NEAR(weights[1], 1 / std::log(1.77), 1e-12);
  EXPECT_NEAR(weights[2], 50.49835, 1e-5);  // 1 / log 1.02
  const std::vector<double> loss = loss_weights(counts);
  EXPECT_EQ(loss[0], 0);
  EXPECT_NEAR(loss[1] + loss[2], 1, 1e-12);
  EXPECT_NEAR(loss[2] / loss[1], weights[2] / weights[1], 1e-12);
}

TEST(SegmentationTarget, RefusesWhatMakesNoSense) {
  const Folder folder;
  const Image labels{1, 2, 1, {0, 3}};
  const auto making = [&](const SegmentationTargetOptions& options) {
    return message_of(folder, [&] { blurred_labels(labels, options); });
  };
  EXPECT_EQ(making({.classes = 3}), "labels: found class 3, expected 0 to 2");
  EXPECT_EQ(making({.kernel = 4}),
            "segmentation target: 20 classes, kernel 4, epsilon 1e-06, expected 1 to 256, an odd "
            "number and 0 to 0.5");
  EXPECT_EQ(message_of(folder, [] { blurred_labels(blank_image(1, 1, 3)); }),
            "labels: 3 channels, expected 1");
  std::vector<uint64_t> counts(3);
  EXPECT_EQ(message_of(folder, [&] { count_labels(labels, counts); }),
            "labels: found class 3, expected 0 to 2");
  EXPECT_EQ(message_of(folder, [] { enet_weights(std::vector<uint64_t>(3)); }),
            "class weights: no labels were counted");
}

// Labels come back from their own targets: the blur is symmetric, so at a straight border the
// larger share, hence the least value, is that of the pixel's own class.
TEST(SegmentationTarget, OfStripesHasTheirLabels) {
  Image labels = blank_image(12, 12, 1);
  for (size_t i = 0; i < labels.pixels.size(); ++i) labels.pixels[i] = 1 + i % 12 / 4;
  const Array target = segmentation_target(labels, {.classes = 4});
  for (size_t i = 0; i < 144; ++i) {
    const auto value = [&](size_t label) { return target.values[(label - 1) * 144 + i]; };
    for (const size_t label : {1, 2, 3}) {
      if (label == labels.pixels[i]) continue;
      EXPECT_LT(value(labels.pixels[i]), value(label)) << i;
    }
  }
}

TEST(SegmentationTarget, OfRealData) {
  const char* data = std::getenv("FCP_DATA_DIR");
  if (!data) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  if (!is_folder(std::string(data) + "/cityscapes"))
    GTEST_SKIP() << "FCP_DATA_DIR has no cityscapes";
  const std::string root = std::string(data) + "/cityscapes";
  const SegmentationSet set = open_segmentation(root);
  const Array target = segmentation_target(read_segmentation(set, 0).labels);
  EXPECT_THAT(target.shape, ElementsAre(19, 256, 512));
  const auto [least, most] = std::minmax_element(target.values.begin(), target.values.end());
  EXPECT_NEAR(*least, -13.745160, 1e-5);
  EXPECT_NEAR(*most, 2.625792, 1e-5);

  // The stored weights are those of the 2,000 images the network was trained on, which are not
  // here; those of these 300 differ by what a sample of streets differs.
  std::vector<uint64_t> counts(20);
  for (size_t i = 0; i < set.pairs.size(); ++i) {
    count_labels(read_segmentation(set, i).labels, counts);
  }
  const std::vector<double> weights = enet_weights(counts);
  const std::vector<std::string> stored =
      read_csv_column(root + "/class_weights.csv", "enet_weight");
  ASSERT_EQ(stored.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(weights[i] / std::stod(stored[i]), 1, 0.08) << i;
  }
}

}  // namespace
}  // namespace fcp
