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
// Tested by tests/predictor/segmentation_rows_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/base/prefetch.h"
#include "fcp/data/array.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/data/rows.h"

namespace fcp {

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

}  // namespace fcp
