#include "fcp/pipeline/segmentation_rows.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/file_witness.h"
#include "fcp/evaluation/length.h"
#include "fcp/images/segmentation_target.h"
#include "fcp/scores/score.h"

namespace fcp {
namespace {

constexpr size_t kImagesAhead = 4;

uint64_t pixel_hash(const SegmentImage& image) {
  const auto bytes = [](const Image& one) {
    return std::string_view(reinterpret_cast<const char*>(one.pixels.data()), one.pixels.size());
  };
  return hash_bytes(bytes(image.image)) ^ (3 * hash_bytes(bytes(image.labels)));
}

void check_size(const SegmentTask& task, const SegmentImage& read) {
  const Image& image = read.image;
  if (task.size[0] == 0 || task.size == std::array{image.height, image.width}) return;
  fail(read.path, ": ", image.width, " x ", image.height, " pixels, the network takes ",
       task.size[1], " x ", task.size[0], "; with resize images and labels are made to fit");
}

// The target of bands, and the weights of their weighted length where they are wanted.
void add_target(const SegmentTask& task, bool weights, SegmentImage& image) {
  image.target =
      blurred_labels(image.labels, {.classes = task.classes, .drop_unlabelled = task.first == 1});
  std::vector<float>& values = image.target.values;
  if (weights) {
    const std::vector<double> blurred(values.begin(), values.end());
    image.weights = informative_weights(blurred, blurred.size());
  }
  double_log(values);
  image.target.shape = {1, static_cast<int64_t>(values.size())};
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

SegmentReader::SegmentReader(SegmentationSet set, SegmentTask task, SegmentParts parts)
    : set_(std::move(set)),
      task_(std::move(task)),
      parts_(parts),
      hashes_(set_.pairs.size()),
      last_(set_.pairs.size()) {}

std::optional<SegmentImage> SegmentReader::next() {
  const size_t most =
      std::min<size_t>(kImagesAhead, std::max(1u, std::thread::hardware_concurrency()));
  while (ahead_.empty() ? begun_ < size() : begun_ < last_ && ahead_.size() < most) {
    ahead_.push_back(std::async(std::launch::async, [this, at = begun_] { return read(at); }));
    ++begun_;
  }
  if (ahead_.empty()) return std::nullopt;
  std::future<SegmentImage> first = std::move(ahead_.front());
  ahead_.pop_front();
  return first.get();
}

void SegmentReader::seek(size_t index, size_t last) {
  last_ = last;
  if (index == place()) return;
  ahead_.clear();  // waits for what is being read
  begun_ = std::min(index, size());
}

// From several threads, of which no two have the same image.
SegmentImage SegmentReader::read(size_t index) {
  const SegmentationPair& pair = set_.pairs[index];
  SegmentImage result{pair.name, pair.image, {}, {}, {}, {}, {}};
  if (parts_ == SegmentParts::kImage) {
    result.image = resize_and_crop(task_.transform, read_image(pair.image));
  } else {
    SegmentationSample sample = read_segmentation(set_, index, task_.transform.size);
    result.image = std::move(sample.image);
    result.labels = std::move(sample.labels);
  }
  check_size(task_, result);
  const uint64_t hash = pixel_hash(result), before = std::exchange(hashes_[index], hash);
  if (before != 0 && before != hash) {
    fail(pair.image, ": it or its labels changed while they were read: their pixels had the hash ",
         hash_text(before), " at first, then ", hash_text(hash));
  }
  result.x = zeros({1, 3, result.image.height, result.image.width});
  normalize_image(result.image, task_.transform.mean, task_.transform.deviation, result.x.values);
  if (parts_ == SegmentParts::kTarget || parts_ == SegmentParts::kTargetAndWeights) {
    add_target(task_, parts_ == SegmentParts::kTargetAndWeights, result);
  }
  return result;
}

SegmentationRows::SegmentationRows(SegmentationSet set, SegmentTask task, SegmentParts parts)
    : class_names_(set.class_names), reader_(std::move(set), std::move(task), parts) {
  if (reader_.size() == 0) fail("there are no images");
  std::array<int, 2> size = reader_.task().size;
  if (size[0] == 0) size = reader_.task().transform.size;
  if (size[0] == 0) {
    const Image first = read_image(reader_.pair(0).image);
    size = {first.height, first.width};
  }
  row_shape_ = {3, size[0], size[1]};
}

bool SegmentationRows::next(size_t count, Rows& out) {
  out = Rows{};
  out.first_row = reader_.place();
  images_.clear();
  if (skips_) reader_.seek(out.first_row, std::min(out.first_row + count, reader_.size()));
  for (size_t i = 0; i < count; ++i) {
    std::optional<SegmentImage> image = reader_.next();
    if (!image) break;
    add_row(std::move(*image), out);
  }
  return !images_.empty();
}

void SegmentationRows::add_row(SegmentImage image, Rows& out) {
  append_row(out.x, std::exchange(image.x, {}), image.path);
  if (reader_.parts() == SegmentParts::kLabels) {
    append_row(out.y, pixel_labels(image.labels, task()), image.path);
  } else if (reader_.parts() != SegmentParts::kImage) {
    append_row(out.y, std::exchange(image.target, {}), image.path);
  }
  images_.push_back(std::move(image));
}

void SegmentationRows::rewind() { reader_.seek(0, reader_.size()); }

// Who skips once will again: from now on no image is read that nobody has asked for.
size_t SegmentationRows::skip(size_t count) {
  skips_ = true;
  const size_t from = reader_.place(), to = std::min(from + count, reader_.size());
  reader_.seek(to, to);
  return to - from;
}

size_t SegmentationRows::target_count() const {
  const auto pixels = static_cast<size_t>(row_shape_[1] * row_shape_[2]);
  switch (reader_.parts()) {
    case SegmentParts::kImage:
      return 0;
    case SegmentParts::kLabels:
      return pixels;
    default:
      return pixels * static_cast<size_t>(task().channels());
  }
}

}  // namespace fcp
