// Images whose every pixel has a label, as rows. One image is one row:
//
//   x  [n, 3, H, W]   normalised as the task says
//   y  [n, C·P]       kTarget: log(−log ỹ) of all C channels and P = H·W pixels
//      [n, P]         kLabels: the label of each pixel, counted from the first channel, −1 for none
//
// Images are read in threads, a few ahead of their use, so that memory does not grow with their
// number. Batches are of one image, unless more are asked for: a target has C·P numbers, and images
// of different sizes are legal where the network takes any.
//
// Tested by tests/pipeline/segmentation_rows_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/rows.h"
#include "fcp/images/segmentation.h"
#include "fcp/pipeline/segmentation_task.h"

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

struct SegmentImage {
  std::string name;
  std::string path;
  Image image;                  // RGB, in the size of the network's output
  Image labels;                 // classes; where they are read
  Array x;                      // [1, 3, H, W]
  Array target;                 // [1, C·P]; bands
  std::vector<double> weights;  // [C·P] of the weighted length
};

// Labels as a score of pixels takes them: [1, P], counted from the first channel, −1 for none.
Array pixel_labels(const Image& labels, const SegmentTask& task);

// Reads a set in its order, in threads ahead of the consumer.
class SegmentReader {
 public:
  SegmentReader(SegmentationSet set, SegmentTask task, SegmentParts parts);
  SegmentReader(const SegmentReader&) = delete;  // its threads know where it is
  SegmentReader& operator=(const SegmentReader&) = delete;

  size_t size() const { return set_.pairs.size(); }
  const SegmentationPair& pair(size_t index) const { return set_.pairs.at(index); }
  const SegmentTask& task() const { return task_; }
  SegmentParts parts() const { return parts_; }
  std::optional<SegmentImage> next();  // nothing after the last

  // Goes to an image. From `last` on, nothing is read before it is asked for.
  void seek(size_t index, size_t last);
  size_t place() const { return begun_ - ahead_.size(); }  // of the image that next() gives

 private:
  SegmentImage read(size_t index);

  SegmentationSet set_;
  SegmentTask task_;
  SegmentParts parts_;
  std::vector<uint64_t> hashes_;  // of the pixels of each image; 0 before it is read
  size_t last_;
  size_t begun_ = 0;
  std::deque<std::future<SegmentImage>> ahead_;  // last: its threads use the rest
};

class SegmentationRows : public RowSource {
 public:
  // An Error where the set is empty.
  SegmentationRows(SegmentationSet set, SegmentTask task, SegmentParts parts);

  bool next(size_t count, Rows& out) override;
  void rewind() override;
  size_t skip(size_t count) override;
  std::optional<size_t> size() const override { return reader_.size(); }
  std::optional<size_t> usual_batch() const override { return 1; }
  const std::vector<std::string>& column_names() const override { return no_names_; }
  const std::vector<std::string>& target_names() const override { return no_names_; }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }  // of the first
  size_t target_count() const override;                                          // of the first
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string row_name(size_t row) const override { return reader_.pair(row).name; }
  std::string row_place(size_t row) const override { return reader_.pair(row).image; }

  // The images of the rows that next() gave last, without their x: pictures, labels, weights.
  const std::vector<SegmentImage>& images() const { return images_; }
  const SegmentTask& task() const { return reader_.task(); }

 private:
  void add_row(SegmentImage image, Rows& out);

  std::vector<std::string> class_names_;
  SegmentReader reader_;
  bool skips_ = false;
  std::vector<int64_t> row_shape_;
  std::vector<std::string> no_names_;
  std::vector<SegmentImage> images_;
};

}  // namespace fcp
