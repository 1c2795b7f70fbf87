#include "fcp/data/images/image_list.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <dirent.h>
#include <sys/stat.h>

#include "fcp/base/error.h"
#include "fcp/base/prefetch.h"
#include "fcp/data/bytes.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/file_witness.h"
#include "fcp/data/images/image.h"
#include "fcp/data/npy.h"
#include "fcp/data/number.h"

namespace fcp {

namespace {

std::vector<std::string> images_in(const std::string& folder) {
  std::vector<std::string> images = list_folder(folder).files;
  std::erase_if(images, [](const std::string& name) { return !has_image_name(name); });
  for (std::string& name : images) name = path_in(folder, name);
  return images;
}

ImageList list_classes(const std::string& folder, const std::vector<std::string>& classes) {
  ImageList list{{}, {}, classes};
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::vector<std::string> images = images_below(path_in(folder, classes[i]));
    if (images.empty())
      fail(folder, "/", classes[i], ": no .jpg, .jpeg or .png image of its class");
    list.files.insert(list.files.end(), images.begin(), images.end());
    list.labels.resize(list.files.size(), static_cast<float>(i));
  }
  return list;
}

ImageList list_image_folder(const std::string& folder) {
  const std::vector<std::string> classes = list_folder(folder).folders;
  const std::vector<std::string> images = images_in(folder);
  if (!classes.empty() && !images.empty()) {
    fail(folder, ": holds both images (", images[0], ") and folders (", classes[0],
         "), expected images alone or a folder for each class");
  }
  if (!classes.empty()) return list_classes(folder, classes);
  if (images.empty()) fail(folder, ": no .jpg, .jpeg or .png image");
  return {images, {}, {}};
}

// Numbers where all cells are numbers. The same names are given back that came in, or the sorted
// ones of the cells.
std::vector<float> number_labels(const std::string& path, const std::vector<std::string>& cells,
                                 std::vector<std::string>& names) {
  std::vector<float> labels;
  double number = 0;
  for (const std::string& cell : cells) {
    if (parse_number(cell, number)) labels.push_back(static_cast<float>(number));
  }
  if (labels.size() == cells.size()) return labels;
  if (names.empty()) {
    const std::set<std::string> sorted(cells.begin(), cells.end());
    names.assign(sorted.begin(), sorted.end());
  }
  std::map<std::string, size_t> index;
  for (const std::string& name : names) {
    if (!index.emplace(name, index.size()).second) {
      fail(path, ": labels are text, but two classes are called '", name, "'; number the labels");
    }
  }
  labels.clear();
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto found = index.find(cells[i]);
    if (is_missing(cells[i]) || found == index.end()) {
      fail(path, ": row ", i, " (from 0): found label '", cells[i], "', expected a class name");
    }
    labels.push_back(static_cast<float>(found->second));
  }
  return labels;
}

ImageList list_csv(const std::string& path, const ImageListOptions& options,
                   std::vector<std::string> names) {
  const CsvOptions header{.header = CsvHeader::kYes};
  ImageList list;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const std::string& cell : read_csv_column(path, options.file_column, header)) {
    if (cell.empty()) fail(path, ": row ", list.files.size(), " (from 0): no file name");
    list.files.push_back(cell.starts_with('/') ? cell : folder + cell);
  }
  if (!options.label_column.empty()) {
    list.labels = number_labels(path, read_csv_column(path, options.label_column, header), names);
  }
  list.class_names = std::move(names);
  return list;
}

void check_labels(const ImageList& list) {
  for (size_t i = 0; i < list.labels.size(); ++i) {
    const float label = list.labels[i];
    if (label < 0 || label != std::floor(label) ||
        label >= static_cast<float>(list.class_names.size())) {
      fail(list.files[i], ": label ", label, ", expected a whole number from 0 to ",
           list.class_names.size() - 1, ", one for each class name");
    }
  }
}

}  // namespace

std::vector<std::string> images_below(const std::string& folder) {
  std::vector<std::string> folders = {folder};
  for (size_t i = 0; i < folders.size(); ++i) {
    for (const std::string& name : list_folder(folders[i]).folders) {
      folders.push_back(path_in(folders[i], name));
    }
  }
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> all;
  for (const std::string& one : folders) {
    std::vector<std::string> images = images_in(one);
    std::move(images.begin(), images.end(), std::back_inserter(all));
  }
  return all;
}

ImageList list_images(const std::string& data, const ImageListOptions& options) {
  std::vector<std::string> names;
  if (!options.class_file.empty()) names = read_lines(options.class_file);
  if (!is_folder(data)) {
    ImageList list = list_csv(data, options, std::move(names));
    if (!list.class_names.empty()) check_labels(list);
    return list;
  }
  ImageList list = list_image_folder(data);
  if (!names.empty() && !list.class_names.empty() && names.size() != list.class_names.size()) {
    fail(options.class_file, ": found ", names.size(), " class names, expected ",
         list.class_names.size(), ", one for each folder of ", data);
  }
  if (!names.empty()) list.class_names = std::move(names);
  return list;
}

// POSIX and not std::filesystem's iterators: pip's libtorch exports its own copy of those, of
// another compiler, which the dynamic linker then picks.
bool is_folder(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

FolderEntries list_folder(const std::string& path) {
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(opendir(path.c_str()));
  if (!folder) {
    fail(path, ": ", errno == ENOENT ? "no such folder" : std::strerror(errno));
  }
  FolderEntries entries;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with('.')) continue;
    (is_folder(path_in(path, name)) ? entries.folders : entries.files).push_back(name);
  }
  std::sort(entries.files.begin(), entries.files.end());
  std::sort(entries.folders.begin(), entries.folders.end());
  return entries;
}

std::string path_in(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

std::string file_stem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == 0 ? name : name.substr(0, dot);
}

std::vector<std::string> read_lines(const std::string& path) {
  const auto source = open_bytes(path);
  std::vector<std::string> lines(1);
  char piece[4096];
  for (size_t got; (got = source->read(piece, sizeof(piece))) > 0;) {
    for (size_t i = 0; i < got; ++i) {
      if (piece[i] == '\n') {
        lines.emplace_back();
      } else if (piece[i] != '\r') {
        lines.back() += piece[i];
      }
    }
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

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
