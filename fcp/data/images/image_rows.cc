#include "fcp/data/images/image_rows.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/prefetch.h"
#include "fcp/data/file_witness.h"
#include "fcp/data/images/folder.h"
#include "fcp/data/npy.h"

namespace fcp {

namespace {

// What both kinds of images share.
class ImageSource : public RowSource {
 public:
  explicit ImageSource(const ImageTransform& transform) : transform_(transform) {
    check_transform(transform);
  }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 protected:
  void set_size(std::array<int, 2> size) { row_shape_ = {3, size[0], size[1]}; }
  // The numbers of one image; its size after the transform must be the one of all rows.
  void fill(Image image, const std::string& name, std::span<float> out) const {
    const auto [height, width] = transformed_size(transform_, {image.height, image.width});
    if (height != row_shape_[1] || width != row_shape_[2]) {
      fail(name, ": ", width, " x ", height, " pixels after the transform, expected ",
           row_shape_[2], " x ", row_shape_[1], " as the first image has; crop or resize them all");
    }
    try {
      image = resize_and_crop(transform_, std::move(image));
    } catch (const Error& error) {  // too large: a picture of one row, say
      fail(name, ": ", error.what());
    }
    normalize_image(image, transform_.mean, transform_.deviation, out);
  }
  // Keeps the memory of the batch before.
  void set_rows(Array& rows, size_t count) const {
    rows.shape = {static_cast<int64_t>(count)};
    rows.shape.insert(rows.shape.end(), row_shape_.begin(), row_shape_.end());
    rows.values.resize(element_count(rows.shape));
  }
  std::span<float> row_of(Array& rows, size_t i) const {
    return std::span(rows.values).subspan(i * rows.row_size(), rows.row_size());
  }

  ImageTransform transform_;
  std::vector<int64_t> row_shape_;
  std::vector<std::string> class_names_;
};

size_t thread_count(size_t wanted) {
  return wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

class FileImages : public ImageSource {
 public:
  FileImages(ImageList list, const ImageOptions& options)
      : ImageSource(options.transform),
        list_(std::move(list)),
        hashes_(list_.files.size()),
        images_(list_.files.size(), options.ahead, thread_count(options.threads),
                [this](size_t i, std::vector<float>& numbers) { make(i, numbers); }) {
    class_names_ = list_.class_names;
    std::array<int, 2> size = transformed_size(transform_, {0, 0});
    if (size[0] == 0) {
      const Image first = read_image(list_.files[0]);
      size = transformed_size(transform_, {first.height, first.width});
    }
    set_size(size);
  }

  bool next(size_t count, Rows& out) override {
    const size_t first = images_.position(), some = std::min(count, images_.size() - first);
    out.first_row = first;
    out.names = [this, first](size_t i) { return list_.files.at(first + i); };
    out.parts = {{0, out.names}};
    set_rows(out.x, some);
    out.y = Array{};
    if (!list_.labels.empty()) {
      const auto label = list_.labels.begin() + static_cast<std::ptrdiff_t>(first);
      out.y = {{static_cast<int64_t>(some), 1}, {label, label + static_cast<std::ptrdiff_t>(some)}};
    }
    images_.next(some, [&](size_t i, const std::vector<float>& numbers) {
      std::copy(numbers.begin(), numbers.end(), row_of(out.x, i).begin());
    });
    return some > 0;
  }
  size_t skip(size_t count) override { return images_.skip(count); }
  void rewind() override { images_.rewind(); }
  std::optional<size_t> size() const override { return images_.size(); }
  size_t target_count() const override { return list_.labels.empty() ? 0 : 1; }

 private:
  // From several threads, of which no two have the same image at the same time.
  void make(size_t i, std::vector<float>& numbers) {
    const std::string& file = list_.files[i];
    Image image = read_image(file);
    const uint64_t hash =
        hash_bytes({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
    const uint64_t before = std::exchange(hashes_[i], hash);
    if (before != 0 && before != hash) {
      fail(file, ": changed while it was read: its pixels had the hash ", hash_text(before),
           " at first, then ", hash_text(hash));
    }
    numbers.resize(element_count(row_shape_));
    fill(std::move(image), file, numbers);
  }

  ImageList list_;
  std::vector<uint64_t> hashes_;               // of the pixels of each image; 0 before it is read
  PrefetchedList<std::vector<float>> images_;  // last: its threads use the rest
};

// Over the rows of the array as they are.
class ArrayImages : public ImageSource {
 public:
  ArrayImages(const std::string& data, const ImageOptions& options)
      : ImageSource(options.transform), name_(data), rows_(open_rows(data, options.labels)) {
    const NpyReader reader(data);
    const std::vector<int64_t>& shape = reader.shape();
    const NpyType& type = reader.header().type;
    if (type.kind != 'u' || type.size != 1 || shape.size() != 4 || shape[3] != 3) {
      fail(data, ": shape ", shape_text(shape), " of type ", type.kind, type.size,
           ", expected images [N, height, width, 3] of type u1");
    }
    check_image_size(shape[1], shape[2], data);
    in_ = {static_cast<int>(shape[1]), static_cast<int>(shape[2])};
    set_size(transformed_size(transform_, in_));
    if (!options.list.class_file.empty()) class_names_ = read_lines(options.list.class_file);
  }

  bool next(size_t count, Rows& out) override {
    Rows raw;
    const bool some = rows_->next(count, raw);
    out.first_row = raw.first_row;
    out.parts = std::move(raw.parts);
    out.y = std::move(raw.y);
    set_rows(out.x, raw.x.rows());
    for (size_t i = 0; i < raw.x.rows(); ++i) {
      const std::span<const float> bytes = raw.x.row(i);
      Image image{in_[0], in_[1], 3, {bytes.begin(), bytes.end()}};
      fill(std::move(image), name_, row_of(out.x, i));
    }
    return some;
  }
  size_t skip(size_t count) override { return rows_->skip(count); }
  void rewind() override { rows_->rewind(); }
  std::optional<size_t> size() const override { return rows_->size(); }
  size_t target_count() const override { return rows_->target_count(); }

 private:
  std::string name_;
  std::unique_ptr<RowSource> rows_;
  std::array<int, 2> in_ = {};
};

}  // namespace

std::unique_ptr<RowSource> open_images(const std::string& data, const ImageOptions& options) {
  if (!is_folder(data) && holds_array(data)) return std::make_unique<ArrayImages>(data, options);
  if (!options.labels.empty()) {
    fail(data, ": not an .npy array, but ", options.labels, " is named for its labels");
  }
  return std::make_unique<FileImages>(list_images(data, options.list), options);
}

}  // namespace fcp
