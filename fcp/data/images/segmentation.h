// Images whose every pixel has a label, found on the disk and read in pairs. Known layouts:
//   Cityscapes   leftImg8bit/SPLIT/CITY/NAME_leftImg8bit.png and
//                gtFine/SPLIT/CITY/NAME_gtFine_labelIds.png; label ids become the 19 classes that
//                are scored, counted from 1, and everything else 0; the fold is SPLIT
//   CamVid       NAME/ and NAMEannot/ for every fold, files paired by their names
//   plain        images/ and labels/, paired by name, and split.csv (file,fold) where there is one
// Class 0 is what has no label.
//
// Nothing is decoded until it is asked for. An image without labels, labels without an image, sizes
// that differ and values that are no class are Errors that name both files.
//
// Tested by tests/data/images/segmentation_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fcp/data/images/image.h"
#include "fcp/data/images/image_transform.h"

namespace fcp {

struct SegmentationPair {
  std::string name;  // what both files are called, without folder and ending
  std::string image;
  std::string labels;
  std::string fold;  // "" where the layout has none
};

struct SegmentationSet {
  std::vector<SegmentationPair> pairs;
  int classes = 0;                       // class 0 included
  std::vector<std::string> class_names;  // of Cityscapes; otherwise empty
  std::array<uint8_t, 256> class_of;     // of each value in the label files; kNoClass: refused

  static constexpr uint8_t kNoClass = 255;
};

// The layout under `root`, with every fold it has, or with those of `folds` alone. `classes` is for
// layouts that do not fix it: values from there on are refused.
SegmentationSet open_segmentation(const std::string& root, int classes = 20,
                                  const std::vector<std::string>& folds = {});

// Two folders, paired by name.
SegmentationSet pair_folders(const std::string& images, const std::string& labels,
                             const std::string& fold = "", int classes = 20);

struct SegmentationSample {
  Image image;   // RGB
  Image labels;  // classes, one channel, of the same size
};

// One pair, resized to height and width where they are not 0: the image as photographs are, the
// labels by their nearest pixel.
SegmentationSample read_segmentation(const SegmentationSet& set, size_t index,
                                     std::array<int, 2> size = {0, 0});

// How the images of a calibrated network are read and which of its channels are which classes. Kept
// in the network's metadata.
struct SegmentTask {
  int classes = 0;                   // of the labels, class 0 included
  int first = 1;                     // the class of the first channel: 0 where class 0 has one
  std::string output;                // the name of the network's output
  std::array<int, 2> size = {0, 0};  // height and width that the network takes; 0: any
  ImageTransform transform;

  int channels() const { return classes - first; }
};

// One image of a batch of rows (Rows::images).
struct SegmentImage {
  std::string name;
  Image image;                       // RGB, in the size of the network's output
  Image labels = {};                 // classes; where they are read
  std::vector<double> weights = {};  // [C·P] of the weighted length; where they are wanted
};

}  // namespace fcp
