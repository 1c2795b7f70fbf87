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
#include <span>
#include <string>
#include <vector>

#include "fcp/data/array.h"
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

// Which images of a folder are used: the folds asked for, or the one that a step usually takes.
//
// Tested by tests/predictor/segmentation_task_test.cc.

struct SegmentDataOptions {
  std::string data;                // a folder of a known layout; without labels any folder or file
  std::vector<std::string> folds;  // empty: the usual one of a step
};

// The pairs of image and labels in the folds asked for. Where none are, those of fold `usual`, or
// everything where the layout has no folds; an Error where there are others.
SegmentationSet open_labelled(const SegmentDataOptions& options, const std::string& usual,
                              int classes);

// The images alone, of a layout or of any folder, or a single one; labels are not looked for.
SegmentationSet open_unlabelled(const SegmentDataOptions& options, int classes);

// Segmentation as regression, as the paper does it: a number for each class and pixel.
//
// Idea: the one-hot labels are blurred, so that pixels near the border of an object are undecided,
// and the double logarithm spreads (0, 1) over the real line:
//   y = 1 − ε or ε,   ỹ = G * y  (a Gaussian of kernel × kernel pixels, σ = 0.3((k − 1)/2 − 1) +
//   0.8, borders mirrored without repeating the edge),   target = log(−log ỹ),   ỹ =
//   exp(−exp(target)).
// The target falls as the class grows likely.
//
// All of it is float32, weights and sums in the order of the authors' code: 1 − 1e-6 is only 17
// units in the last place below 1, so that rounding is visible in the target: deep inside an object
// it is −13.745 where exact numbers give −13.816.
// Cost: kernel² operations per class and pixel, but none for rows a class is far from.
//
// Reference: the paper, appendix on experimental details; class weights: Paszke et al., ENet, 2016.
// Tested by tests/data/images/segmentation_test.cc, tests/parity/image_parity_test.cc.

struct SegmentationTargetOptions {
  int classes = 20;  // class 0, without label, included
  float epsilon = 1e-6f;
  int kernel = 7;               // odd
  bool drop_unlabelled = true;  // leaves class 0 out of the result
};

// ỹ as [channels, height, width]; channels are the classes, less one where class 0 is dropped. What
// the weighted length (informative_weights of fcp/evaluation) starts from.
Array blurred_labels(const Image& labels, const SegmentationTargetOptions& options = {});

// log(−log y), in place.
void double_log(std::span<float> values);

// log(−log ỹ): what the network is trained to give.
Array segmentation_target(const Image& labels, const SegmentationTargetOptions& options = {});

// Adds the pixels of every class to `counts`, which has one number per class.
void count_labels(const Image& labels, std::span<uint64_t> counts);

// ENet's weights 1 / log(c + p), p the share of the class among all pixels: from 1 / log(c + 1) for
// a class that is everywhere to 1 / log(c) for one that is nowhere. c > 1.
std::vector<double> enet_weights(std::span<const uint64_t> counts, double c = 1.02);

// The same without class 0, which gets weight 0, and divided by their sum.
std::vector<double> loss_weights(std::span<const uint64_t> counts, double c = 1.02);

}  // namespace fcp
