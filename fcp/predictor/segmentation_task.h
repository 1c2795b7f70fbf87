// A network made ready for images whose every pixel is scored, and what must be known of them to
// read new images for it.
//
// Tested by tests/predictor/segmentation_task_test.cc, tests/cli/test_segment.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/base/prefetch.h"
#include "fcp/data/array.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/data/rows.h"
#include "fcp/methods/scores/score.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/context.h"

namespace fcp {

struct SegmentTaskOptions {
  std::string output{};          // of the network; empty: its only one
  bool keep_unlabelled = false;  // class 0 keeps its channel
  bool resize = false;           // images and labels, to what the network takes
  // Of which mean and deviation are used; none: the network's own, or ImageNet's.
  std::optional<ImageTransform> transform{};
};

// The channels of the output, named or the only one. An Error where it is not one of images.
int output_channels(const Graph& network, const std::string& output);

// Cuts the channel of class 0 off the output, so that nothing after it needs to know of it; writes
// into the metadata what parse_task reads. `classes` are those of the data; a network may have a
// channel for each of them, or for all but class 0.
SegmentTask prepare_network(Graph& network, const SegmentTaskOptions& options, int classes);

// Of a calibrated network. An Error names the file where it was not calibrated for segmentation.
SegmentTask parse_task(const Graph& network, const std::string& path);

// The weight of each channel in the surrogate's squared error of pixels: classes that are seldom
// weigh more. ENet's weights (loss_weights of fcp/data/images/segmentation.h) of the labels
// of a set, or those of a CSV file with the columns class and loss_weight; class 0 need not be
// there unless it has a channel.
std::vector<double> channel_weights(const SegmentationSet& set, const SegmentTask& task,
                                    const Context& context);
std::vector<double> read_channel_weights(const std::string& csv, const SegmentTask& task);

// Images whose every pixel has a label, as rows. One image is one row:
//
//   x  [n, 3, H, W]   normalised as the task says
//   y  [n, C·P]       kTarget: log(−log ỹ) of all C channels and P = H·W pixels
//      [n, P]         kLabels: the label of each pixel, counted from the first channel, −1 for none
//
// A few images are prefetched, so that memory does not grow with their number. Batches are of one
// image, unless more are asked for: a target has C·P numbers, and images of different sizes are
// legal where the network takes any.
//
// Tested by tests/predictor/segmentation_task_test.cc.

// What is read of each image.
enum class SegmentParts {
  kImage,            // x alone: prediction
  kLabels,           // and the label of each pixel as y
  kTarget,           // and the target as y
  kTargetAndWeights  // and the weights of the weighted length: evaluation of bands
};

// What a score needs for the truth: labels for sets of labels, the target for bands.
SegmentParts truth_parts(const std::string& score);

// Labels as a score of pixels takes them: [1, P], counted from the first channel, −1 for none.
Array pixel_labels(const Image& labels, const SegmentTask& task);

class SegmentationRows : public RowSource {
 public:
  // An Error where the set is empty.
  SegmentationRows(SegmentationSet set, SegmentTask task, SegmentParts parts);

  bool next(size_t count, Rows& out) override;
  void rewind() override { images_.rewind(); }
  size_t skip(size_t count) override { return images_.skip(count); }
  std::optional<size_t> size() const override { return images_.size(); }
  std::optional<size_t> usual_batch() const override { return 1; }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }  // of the first
  size_t target_count() const override;                                          // of the first
  const std::vector<std::string>& class_names() const override { return set_.class_names; }
  const SegmentTask* segmentation() const override { return &task_; }

 private:
  struct ReadImage {
    std::shared_ptr<SegmentImage> image;
    Array x, y;  // rows [1, …]
  };

  void read(size_t index, ReadImage& out);

  SegmentationSet set_;
  SegmentTask task_;
  SegmentParts parts_;
  std::vector<uint64_t> hashes_;  // of the pixels of each image; 0 before it is read
  std::vector<int64_t> row_shape_;
  PrefetchedList<ReadImage> images_;  // last: its threads use the rest
};

// An image of pixels with its regions as numbers and pictures: how unsure the network is of each
// pixel, and a strip image | prediction | uncertainty.

// Regions are those of one image: a batch of one row.

// One number per pixel in [0, 1]: of bands their length as probabilities, averaged over the
// classes; of sets the share of all other labels that are in.
std::vector<float> pixel_uncertainty(const Regions& regions, const SegmentTask& task);

// The class that the network answers for each pixel.
Image predicted_classes(const Image& image, const Regions& regions, const SegmentTask& task);

// Nonzero where a pixel is not in: its label outside its set, or one of its channels outside its
// band. `y` is the image's row: labels of pixels, or the target of bands. Pixels without a label
// are not missed.
std::vector<uint8_t> missed_pixels(const Regions& regions, std::span<const float> y,
                                   const SegmentTask& task);

// The strip. The map's lightest colour stands for the image's largest uncertainty.
Image pixel_picture(const Image& image, const Regions& regions, const SegmentTask& task,
                    std::span<const std::string> class_names);

// Row `i` of a batch's regions as a batch of its own.
Regions region_of_row(const Regions& regions, size_t i);

}  // namespace fcp
