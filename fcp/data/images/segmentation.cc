#include "fcp/data/images/segmentation.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/images/folder.h"
#include "fcp/data/images/image_list.h"
#include "fcp/data/images/image_transform.h"

namespace fcp {

namespace {

struct TrainClass {
  int id;  // in Cityscapes' label files
  const char* name;
};

// In the order of their train ids; these + 1 are the classes.
constexpr TrainClass kTrainClasses[] = {
    {7, "road"},  {8, "sidewalk"},       {11, "building"},     {12, "wall"},       {13, "fence"},
    {17, "pole"}, {19, "traffic_light"}, {20, "traffic_sign"}, {21, "vegetation"}, {22, "terrain"},
    {23, "sky"},  {24, "person"},        {25, "rider"},        {26, "car"},        {27, "truck"},
    {28, "bus"},  {31, "train"},         {32, "motorcycle"},   {33, "bicycle"}};
constexpr int kLastLabelId = 33;
constexpr int kLicencePlate = 255;  // label id −1 in a byte

SegmentationSet cityscapes_classes() {
  SegmentationSet set;
  set.class_of.fill(SegmentationSet::kNoClass);
  std::fill_n(set.class_of.begin(), kLastLabelId + 1, uint8_t{0});
  set.class_of[kLicencePlate] = 0;
  set.class_names = {"unlabeled"};
  for (const auto& [id, name] : kTrainClasses) {
    set.class_of[static_cast<size_t>(id)] = static_cast<uint8_t>(set.class_names.size());
    set.class_names.emplace_back(name);
  }
  set.classes = static_cast<int>(set.class_names.size());
  return set;
}

SegmentationSet plain_classes(int classes) {
  if (classes < 1 || classes > SegmentationSet::kNoClass) {
    fail("segmentation: ", classes, " classes, expected 1 to ", int{SegmentationSet::kNoClass});
  }
  SegmentationSet set;
  set.classes = classes;
  set.class_of.fill(SegmentationSet::kNoClass);
  for (size_t i = 0; i < static_cast<size_t>(classes); ++i)
    set.class_of[i] = static_cast<uint8_t>(i);
  return set;
}

using Stems = std::map<std::string, std::string>;  // the path of each name

// Files below the folder whose names end in `ending` before the format's own, by what is before.
Stems stems_below(const std::string& folder, const std::string& ending) {
  Stems stems;
  for (const std::string& path : images_below(folder)) {
    std::string stem = file_stem(path);
    if (!stem.ends_with(ending)) continue;
    stem.resize(stem.size() - ending.size());
    const auto [at, fresh] = stems.emplace(stem, path);
    if (!fresh) fail(path, ": has the same name as ", at->second, ", expected one image of a name");
  }
  return stems;
}

const std::string& partner_of(const std::string& path, const std::string& name, const Stems& others,
                              const std::string& folder, const char* what) {
  const auto found = others.find(name);
  if (found == others.end()) fail(path, ": no ", what, " called ", name, " in ", folder);
  return found->second;
}

void append_pairs(SegmentationSet& set, const std::string& image_folder, const Stems& images,
                  const std::string& label_folder, const Stems& labels, const std::string& fold) {
  for (const auto& [name, path] : images) {
    set.pairs.push_back({name, path, partner_of(path, name, labels, label_folder, "labels"), fold});
  }
  for (const auto& [name, path] : labels) partner_of(path, name, images, image_folder, "image");
}

bool is_wanted(const std::vector<std::string>& folds, const std::string& fold) {
  return folds.empty() || std::find(folds.begin(), folds.end(), fold) != folds.end();
}

SegmentationSet open_cityscapes(const std::string& root, const std::vector<std::string>& folds) {
  SegmentationSet set = cityscapes_classes();
  for (const std::string& split : list_folder(root + "/leftImg8bit").folders) {
    if (!is_wanted(folds, split)) continue;
    const std::string images = path_in(root + "/leftImg8bit", split);
    const std::string labels = path_in(root + "/gtFine", split);
    append_pairs(set, images, stems_below(images, "_leftImg8bit"), labels,
                 stems_below(labels, "_gtFine_labelIds"), split);
  }
  return set;
}

SegmentationSet open_camvid(const std::string& root, int classes,
                            const std::vector<std::string>& names,
                            const std::vector<std::string>& folds) {
  SegmentationSet set = plain_classes(classes);
  for (const std::string& name : names) {
    if (name.ends_with("annot") || !is_wanted(folds, name)) continue;
    const std::string images = path_in(root, name);
    const Stems image_stems = stems_below(images, "");
    if (image_stems.empty()) continue;
    const std::string labels = images + "annot";
    append_pairs(set, images, image_stems, labels, stems_below(labels, ""), name);
  }
  return set;
}

SegmentationSet open_split(const std::string& root, int classes,
                           const std::vector<std::string>& folds) {
  const std::string csv = root + "/split.csv", images = root + "/images", labels = root + "/labels";
  const CsvOptions header{.header = CsvHeader::kYes};
  const std::vector<std::string> files = read_csv_column(csv, "file", header);
  const std::vector<std::string> all_folds = read_csv_column(csv, "fold", header);
  const Stems image_stems = stems_below(images, ""), label_stems = stems_below(labels, "");
  SegmentationSet set = plain_classes(classes);
  for (size_t i = 0; i < files.size(); ++i) {
    if (!is_wanted(folds, all_folds[i])) continue;
    const std::string name = has_image_name(files[i]) ? file_stem(files[i]) : files[i];
    const std::string& image = partner_of(csv, name, image_stems, images, "image");
    set.pairs.push_back(
        {name, image, partner_of(image, name, label_stems, labels, "labels"), all_folds[i]});
  }
  return set;
}

void map_labels(const SegmentationSet& set, const SegmentationPair& pair, Image& labels) {
  for (size_t i = 0; i < labels.pixels.size(); ++i) {
    const uint8_t value = labels.pixels[i];
    const uint8_t label = set.class_of[value];
    if (label == SegmentationSet::kNoClass) {
      const size_t width = static_cast<size_t>(labels.width);
      fail(pair.labels, ": row ", i / width, ", column ", i % width, " (both from 0): found label ",
           int{value}, ", which is none of the ", set.classes, " classes; labels of ", pair.image);
    }
    labels.pixels[i] = label;
  }
}

}  // namespace

SegmentationSet open_segmentation(const std::string& root, int classes,
                                  const std::vector<std::string>& folds) {
  const std::vector<std::string> names = list_folder(root).folders;
  const auto has = [&](const std::string& name) { return is_folder(path_in(root, name)); };
  SegmentationSet set;
  if (has("leftImg8bit")) {
    set = open_cityscapes(root, folds);
  } else if (has("images") && has("labels")) {
    const bool split = std::filesystem::exists(root + "/split.csv");
    set = split ? open_split(root, classes, folds)
                : pair_folders(root + "/images", root + "/labels", "", classes);
  } else if (std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return has(name + "annot"); })) {
    set = open_camvid(root, classes, names, folds);
  } else {
    fail(root,
         ": no layout of segmentation data: expected leftImg8bit/ and gtFine/, images/ and "
         "labels/, or NAME/ and NAMEannot/");
  }
  if (set.pairs.empty()) {
    fail(root, ": no pair of image and labels", folds.empty() ? "" : " in the folds asked for");
  }
  return set;
}

SegmentationSet pair_folders(const std::string& images, const std::string& labels,
                             const std::string& fold, int classes) {
  SegmentationSet set = plain_classes(classes);
  append_pairs(set, images, stems_below(images, ""), labels, stems_below(labels, ""), fold);
  if (set.pairs.empty()) fail(images, ": no .jpg, .jpeg or .png image");
  return set;
}

SegmentationSample read_segmentation(const SegmentationSet& set, size_t index,
                                     std::array<int, 2> size) {
  const SegmentationPair& pair = set.pairs.at(index);
  SegmentationSample sample{read_image(pair.image), read_label_image(pair.labels)};
  const Image &image = sample.image, &labels = sample.labels;
  if (image.height != labels.height || image.width != labels.width) {
    fail(pair.labels, ": ", labels.width, " x ", labels.height, " pixels, but ", pair.image,
         " has ", image.width, " x ", image.height);
  }
  map_labels(set, pair, sample.labels);
  if (size[0] == 0) return sample;
  return {resize_bilinear(image, size[0], size[1]), resize_nearest(labels, size[0], size[1])};
}

}  // namespace fcp
