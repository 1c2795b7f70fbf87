#include "fcp/data/images/image_list.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "fcp/base/error.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/images/folder.h"
#include "fcp/data/images/image.h"
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

}  // namespace fcp
