#include "fcp/data/images/segmentation.h"

#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fcp/data/images/folder.h"

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
}  // namespace fcp
