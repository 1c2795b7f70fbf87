#include "fcp/data/images/segmentation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/csv_column.h"
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

SegmentationSet open_labelled(const SegmentDataOptions& options, const std::string& usual,
                              int classes) {
  SegmentationSet set = open_segmentation(options.data, classes, options.folds);
  if (!options.folds.empty()) return set;
  std::set<std::string> folds;
  for (const SegmentationPair& pair : set.pairs) folds.insert(pair.fold);
  if (folds.size() == 1) return set;
  if (!folds.contains(usual)) {
    std::string known;
    for (const std::string& fold : folds) known += (known.empty() ? "" : ", ") + fold;
    fail(options.data, ": has the folds ", known, "; name the fold to use");
  }
  std::erase_if(set.pairs, [&](const SegmentationPair& pair) { return pair.fold != usual; });
  return set;
}

SegmentationSet open_unlabelled(const SegmentDataOptions& options, int classes) {
  SegmentationSet set{};
  set.classes = classes;
  if (!is_folder(options.data)) {
    set.pairs.push_back({file_stem(options.data), options.data, "", ""});
    return set;
  }
  const std::vector<std::string> folders = list_folder(options.data).folders;
  const bool layout = std::any_of(folders.begin(), folders.end(), [](const std::string& name) {
    return name == "leftImg8bit" || name == "labels" || name.ends_with("annot");
  });
  if (layout) return open_labelled(options, "test", classes);
  if (!options.folds.empty()) fail(options.data, ": is a plain folder of images; it has no folds");
  std::set<std::string> names;
  for (const std::string& path : images_below(options.data)) {
    set.pairs.push_back({file_stem(path), path, "", ""});
    if (!names.insert(set.pairs.back().name).second) {
      fail(path, ": another image of this folder has the same name");
    }
  }
  if (set.pairs.empty()) fail(options.data, ": no .jpg, .jpeg or .png image");
  return set;
}

namespace {

// The kernel's rows one after the other: products of one-dimensional weights, each the float
// nearest to its exact value.
std::vector<float> gaussian_weights(int kernel) {
  const int radius = kernel / 2;
  const double sigma = 0.3 * ((kernel - 1) * 0.5 - 1) + 0.8;
  std::vector<double> line;
  for (int x = -radius; x <= radius; ++x) line.push_back(std::exp(-x * x / (2 * sigma * sigma)));
  const double sum = std::accumulate(line.begin(), line.end(), 0.0);
  std::vector<float> weights;
  for (const double down : line) {
    for (const double right : line) {
      weights.push_back(static_cast<float>(down / sum) * static_cast<float>(right / sum));
    }
  }
  return weights;
}

// −1 is 1 and n is n − 2; further out it is mirrored again.
int mirrored(int at, int n) {
  if (n == 1) return 0;
  const int period = 2 * (n - 1);
  at = std::abs(at) % period;
  return at < n ? at : period - at;
}

// One class of the one-hot labels with its mirrored margin, and which of its rows have the class.
struct ClassPlane {
  size_t height = 0;
  size_t width = 0;
  std::vector<float> values;
  std::vector<bool> present;

  const float* row(size_t y) const { return values.data() + y * width; }
};

void fill_plane(const Image& labels, int label, const SegmentationTargetOptions& options,
                ClassPlane& plane) {
  const int radius = options.kernel / 2;
  const size_t margin = static_cast<size_t>(options.kernel) - 1;
  plane.height = static_cast<size_t>(labels.height) + margin;
  plane.width = static_cast<size_t>(labels.width) + margin;
  plane.values.assign(plane.height * plane.width, options.epsilon);
  plane.present.assign(plane.height, false);
  const float one = 1 - options.epsilon;
  for (size_t y = 0; y < plane.height; ++y) {
    const uint8_t* const in = labels.row(mirrored(static_cast<int>(y) - radius, labels.height));
    if (std::find(in, in + labels.width, label) == in + labels.width) continue;
    plane.present[y] = true;
    for (size_t x = 0; x < plane.width; ++x) {
      const bool here = in[mirrored(static_cast<int>(x) - radius, labels.width)] == label;
      if (here) plane.values[y * plane.width + x] = one;
    }
  }
}

// The sum over the window, weight by weight in the order of the rows.
void blur_row(const ClassPlane& plane, size_t y, const std::vector<float>& weights, size_t kernel,
              std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.f);
  const float* weight = weights.data();
  for (size_t dy = 0; dy < kernel; ++dy) {
    for (size_t dx = 0; dx < kernel; ++dx, ++weight) {
      const float* const in = plane.row(y + dy) + dx;
      for (size_t x = 0; x < out.size(); ++x) out[x] += *weight * in[x];
    }
  }
}

void blur_plane(const ClassPlane& plane, const std::vector<float>& weights, size_t kernel,
                std::span<float> out) {
  const size_t width = plane.width - kernel + 1;
  for (size_t y = 0; y + kernel <= plane.height; ++y) {
    const std::span<float> row = out.subspan(y * width, width);
    const auto first = plane.present.begin() + static_cast<std::ptrdiff_t>(y);
    const auto last = first + static_cast<std::ptrdiff_t>(kernel);
    if (std::find(first, last, true) != last) {
      blur_row(plane, y, weights, kernel, row);
    } else {  // the same sum everywhere
      blur_row(plane, y, weights, kernel, row.first(1));
      std::fill(row.begin(), row.end(), row[0]);
    }
  }
}

void check_options(const Image& labels, const SegmentationTargetOptions& options) {
  if (labels.channels != 1) fail("labels: ", labels.channels, " channels, expected 1");
  if (options.classes < 1 || options.classes > 256 || options.kernel < 1 ||
      options.kernel % 2 == 0 || !(options.epsilon > 0 && options.epsilon < 0.5f)) {
    fail("segmentation target: ", options.classes, " classes, kernel ", options.kernel,
         ", epsilon ", options.epsilon, ", expected 1 to 256, an odd number and 0 to 0.5");
  }
  for (const uint8_t label : labels.pixels) {
    if (label >= options.classes) {
      fail("labels: found class ", int{label}, ", expected 0 to ", options.classes - 1);
    }
  }
}

}  // namespace

Array blurred_labels(const Image& labels, const SegmentationTargetOptions& options) {
  check_options(labels, options);
  const int first = options.drop_unlabelled ? 1 : 0;
  const std::vector<float> weights = gaussian_weights(options.kernel);
  Array out = zeros({options.classes - first, labels.height, labels.width});
  ClassPlane plane;
  const size_t size = out.row_size();
  for (size_t channel = 0; channel < out.rows(); ++channel) {
    fill_plane(labels, static_cast<int>(channel) + first, options, plane);
    blur_plane(plane, weights, static_cast<size_t>(options.kernel),
               std::span(out.values).subspan(channel * size, size));
  }
  return out;
}

void double_log(std::span<float> values) {
  float before = 0.5f, result = std::log(-std::log(before));
  for (float& value : values) {  // long runs of one value: most pixels are far from a border
    if (value != before) {
      before = value;
      result = std::log(-std::log(value));
    }
    value = result;
  }
}

Array segmentation_target(const Image& labels, const SegmentationTargetOptions& options) {
  Array target = blurred_labels(labels, options);
  double_log(target.values);
  return target;
}

void count_labels(const Image& labels, std::span<uint64_t> counts) {
  for (const uint8_t label : labels.pixels) {
    if (label >= counts.size()) {
      fail("labels: found class ", int{label}, ", expected 0 to ", counts.size() - 1);
    }
    ++counts[label];
  }
}

std::vector<double> enet_weights(std::span<const uint64_t> counts, double c) {
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (all == 0) fail("class weights: no labels were counted");
  if (!(c > 1)) fail("class weights: c is ", c, ", expected > 1");
  std::vector<double> weights;
  for (const uint64_t count : counts) {
    weights.push_back(1 / std::log(c + static_cast<double>(count) / static_cast<double>(all)));
  }
  return weights;
}

std::vector<double> loss_weights(std::span<const uint64_t> counts, double c) {
  std::vector<double> weights = enet_weights(counts, c);
  weights[0] = 0;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace fcp
