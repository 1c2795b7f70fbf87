#include "fcp/predictor/segmentation_rows.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/file_witness.h"
#include "fcp/data/images/segmentation_target.h"
#include "fcp/evaluate/measures/length.h"
#include "fcp/methods/method.h"

namespace fcp {
namespace {

constexpr size_t kImagesAhead = 4;

uint64_t pixel_hash(const SegmentImage& image) {
  const auto bytes = [](const Image& one) {
    return std::string_view(reinterpret_cast<const char*>(one.pixels.data()), one.pixels.size());
  };
  return hash_bytes(bytes(image.image)) ^ (3 * hash_bytes(bytes(image.labels)));
}

void check_size(const SegmentTask& task, const Image& image, const std::string& path) {
  if (task.size[0] == 0 || task.size == std::array{image.height, image.width}) return;
  fail(path, ": ", image.width, " x ", image.height, " pixels, the network takes ", task.size[1],
       " x ", task.size[0], "; with resize images and labels are made to fit");
}

// The target of bands, and the weights of their weighted length where they are wanted.
Array target_of(const SegmentTask& task, bool weights, SegmentImage& image) {
  Array target =
      blurred_labels(image.labels, {.classes = task.classes, .drop_unlabelled = task.first == 1});
  if (weights) {
    const std::vector<double> blurred(target.values.begin(), target.values.end());
    image.weights = informative_weights(blurred, blurred.size());
  }
  double_log(target.values);
  target.shape = {1, static_cast<int64_t>(target.values.size())};
  return target;
}

// Appends a row [1, …]; the rows so far must have its shape.
void append_row(Array& rows, Array row, const std::string& path) {
  if (rows.shape.empty()) {
    rows = std::move(row);
    return;
  }
  if (!std::equal(row.shape.begin() + 1, row.shape.end(), rows.shape.begin() + 1,
                  rows.shape.end())) {
    fail(path, ": has another size than the image before it; they cannot be run together");
  }
  rows.values.insert(rows.values.end(), row.values.begin(), row.values.end());
  ++rows.shape[0];
}

}  // namespace

SegmentParts truth_parts(const std::string& score) {
  return predicts_labels(score) ? SegmentParts::kLabels : SegmentParts::kTarget;
}

Array pixel_labels(const Image& labels, const SegmentTask& task) {
  Array result = zeros({1, static_cast<int64_t>(labels.pixels.size())});
  std::transform(labels.pixels.begin(), labels.pixels.end(), result.values.begin(),
                 [&](uint8_t label) {  // class 0 has no label, whether it has a channel or not
                   return static_cast<float>(label == 0 ? -1 : int{label} - task.first);
                 });
  return result;
}

SegmentationRows::SegmentationRows(SegmentationSet set, SegmentTask task, SegmentParts parts)
    : set_(std::move(set)),
      task_(std::move(task)),
      parts_(parts),
      hashes_(set_.pairs.size()),
      images_(set_.pairs.size(), kImagesAhead,
              std::min<size_t>(kImagesAhead, std::thread::hardware_concurrency()),
              [this](size_t index, ReadImage& out) { read(index, out); }) {
  if (set_.pairs.empty()) fail("there are no images");
  std::array<int, 2> size = task_.size;
  if (size[0] == 0) size = task_.transform.size;
  if (size[0] == 0) {
    const Image first = read_image(set_.pairs[0].image);
    size = {first.height, first.width};
  }
  row_shape_ = {3, size[0], size[1]};
}

// From several threads, of which no two have the same image.
void SegmentationRows::read(size_t index, ReadImage& out) {
  const SegmentationPair& pair = set_.pairs[index];
  out.image = std::make_shared<SegmentImage>(SegmentImage{.name = pair.name, .image = {}});
  SegmentImage& read = *out.image;
  if (parts_ == SegmentParts::kImage) {
    read.image = resize_and_crop(task_.transform, read_image(pair.image));
  } else {
    SegmentationSample sample = read_segmentation(set_, index, task_.transform.size);
    read.image = std::move(sample.image);
    read.labels = std::move(sample.labels);
  }
  check_size(task_, read.image, pair.image);
  const uint64_t hash = pixel_hash(read), before = std::exchange(hashes_[index], hash);
  if (before != 0 && before != hash) {
    fail(pair.image, ": it or its labels changed while they were read: their pixels had the hash ",
         hash_text(before), " at first, then ", hash_text(hash));
  }
  out.x = zeros({1, 3, read.image.height, read.image.width});
  normalize_image(read.image, task_.transform.mean, task_.transform.deviation, out.x.values);
  if (parts_ == SegmentParts::kLabels) {
    out.y = pixel_labels(read.labels, task_);
  } else if (parts_ != SegmentParts::kImage) {
    out.y = target_of(task_, parts_ == SegmentParts::kTargetAndWeights, read);
  }
}

bool SegmentationRows::next(size_t count, Rows& out) {
  const size_t first = images_.position();
  out = Rows{};
  out.first_row = first;
  out.parts = {{0, [this, first](size_t i) { return set_.pairs.at(first + i).image; }}};
  out.names = [this, first](size_t i) { return set_.pairs.at(first + i).name; };
  images_.next(count, [&](size_t, ReadImage& read) {
    const std::string path = out.place(out.images.size());
    append_row(out.x, std::exchange(read.x, {}), path);
    if (parts_ != SegmentParts::kImage) append_row(out.y, std::exchange(read.y, {}), path);
    out.images.push_back(std::move(read.image));
  });
  return !out.images.empty();
}

size_t SegmentationRows::target_count() const {
  const auto pixels = static_cast<size_t>(row_shape_[1] * row_shape_[2]);
  switch (parts_) {
    case SegmentParts::kImage:
      return 0;
    case SegmentParts::kLabels:
      return pixels;
    default:
      return pixels * static_cast<size_t>(task_.channels());
  }
}

}  // namespace fcp
