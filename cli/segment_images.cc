#include "cli/segment_images.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/evaluation/length.h"
#include "fcp/images/folder.h"
#include "fcp/images/image_list.h"
#include "fcp/images/image_text.h"
#include "fcp/images/segmentation_target.h"

namespace fcp {
namespace {

constexpr char kSegmentationKey[] = "fcp.segmentation";
constexpr size_t kImagesAhead = 4;

const TensorInfo& only_image_input(const Graph& network) {
  if (network.inputs.size() != 1) {
    fail("the network has ", network.inputs.size(), " inputs; segmentation needs one of images");
  }
  const TensorInfo& input = network.inputs[0];
  if (!input.known_rank || input.shape.size() != 4 || input.shape[1] != 3) {
    fail("input '", input.name, "' is not one of RGB images, [rows, 3, height, width]");
  }
  return input;
}

const TensorInfo& image_output(const Graph& network, const std::string& name) {
  if (name.empty() && network.outputs.size() != 1) {
    fail("the network has ", network.outputs.size(), " outputs; choose one with --output");
  }
  for (const TensorInfo& output : network.outputs) {
    if (!name.empty() && output.name != name) continue;
    if (!output.known_rank || output.shape.size() != 4 || output.shape[1] == kDynamic) {
      fail("output '", output.name,
           "' is not a number for each class and pixel: expected [rows, classes, height, width] ",
           "with the classes given");
    }
    return output;
  }
  fail("the network has no output '", name, "'");
}

// The image's height and width at the end of a shape; 0 where they are open.
std::array<int, 2> size_of(const TensorInfo& info) {
  if (info.shape[2] == kDynamic || info.shape[3] == kDynamic) return {0, 0};
  return {static_cast<int>(info.shape[2]), static_cast<int>(info.shape[3])};
}

// Renames the tensor and slices it under its old name, so that the output is still called so.
void drop_first_channel(Graph& network, const std::string& output) {
  constexpr int64_t kSliceByInputs = 10;  // the first opset in which it takes starts as an input
  if (network.opset < kSliceByInputs) {
    fail("the network is of opset ", network.opset, "; dropping class 0 needs ", kSliceByInputs);
  }
  const std::string whole = output + ".all_classes";
  for (Node& node : network.nodes) {
    std::replace(node.inputs.begin(), node.inputs.end(), output, whole);
    std::replace(node.outputs.begin(), node.outputs.end(), output, whole);
  }
  Node slice;
  slice.name = output + ".drop_class_0";
  slice.op = "Slice";
  slice.inputs = {whole};
  const auto add = [&](const char* part, int64_t value) {
    const std::string name = slice.name + "." + part;
    network.initializers[name] = torch::full({1}, value, torch::kLong);
    slice.inputs.push_back(name);
  };
  add("starts", 1);
  add("ends", std::numeric_limits<int64_t>::max());
  add("axes", 1);
  slice.outputs = {output};
  network.nodes.push_back(slice);
  for (TensorInfo& info : network.outputs) {
    if (info.name == output) --info.shape[1];
  }
}

ImageTransform segment_transform(const SegmentDataOptions& options, const Graph& network,
                                 std::array<int, 2> size) {
  ImageTransform transform = options.transform;
  const auto own = network.metadata.find(kImagesKey);
  if (!options.transform_given && own != network.metadata.end()) {
    transform = parse_transform(own->second);
  }
  transform.resize = transform.crop = 0;
  transform.size = {0, 0};
  if (options.resize) {
    if (size[0] == 0) fail("--resize: the network takes images of any size");
    transform.size = size;
  }
  check_transform(transform);
  return transform;
}

}  // namespace

void add_segment_data(CLI::App& verb, SegmentDataOptions& options) {
  verb.add_option("--fold", options.folds, "Folds of the data to use, where it has some")
      ->delimiter(',')
      ->allow_extra_args(false);
}

int output_channels(const Graph& network, const std::string& output) {
  return static_cast<int>(image_output(network, output).shape[1]);
}

SegmentTask prepare_network(Graph& network, const SegmentDataOptions& options,
                            const std::string& output_name, int classes) {
  const TensorInfo& input = only_image_input(network);
  const TensorInfo& output = image_output(network, output_name);
  const auto channels = static_cast<int>(output.shape[1]);
  SegmentTask task;
  task.classes = classes;
  task.output = output.name;
  task.size = size_of(input);
  if (task.size != size_of(output) && task.size[0] > 0 && size_of(output)[0] > 0) {
    fail("output '", output.name, "' has ", output.shape[3], " x ", output.shape[2],
         " pixels, the images ", input.shape[3], " x ", input.shape[2],
         "; expected one answer for each pixel of the image");
  }
  if (channels == task.classes) {
    task.first = options.keep_unlabelled ? 0 : 1;
    if (task.first == 1) drop_first_channel(network, task.output);
  } else if (channels != task.classes - 1 || options.keep_unlabelled) {
    fail("output '", output.name, "' has ", channels, " channels for ", task.classes,
         " classes; expected one a class, that of class 0 (without label) included or not");
  }
  if (task.channels() < 1) fail("output '", task.output, "' has no channel but that of class 0");
  task.transform = segment_transform(options, network, task.size);
  network.metadata[kImagesKey] = transform_text(task.transform);
  network.metadata[kSegmentationKey] =
      nlohmann::ordered_json{{"classes", task.classes}, {"first", task.first}}.dump();
  return task;
}

SegmentTask parse_task(const Graph& network, const std::string& path) {
  const auto found = network.metadata.find(kSegmentationKey);
  const auto images = network.metadata.find(kImagesKey);
  if (found == network.metadata.end() || images == network.metadata.end()) {
    fail(path, ": was not calibrated for segmentation; run `fcp segment calibrate` first");
  }
  const auto json = nlohmann::json::parse(found->second, nullptr, false);
  SegmentTask task;
  if (!json.is_object() || !json.value("classes", nlohmann::json()).is_number_integer() ||
      !json.value("first", nlohmann::json()).is_number_integer()) {
    fail(path, ": its '", kSegmentationKey, "' is damaged");
  }
  task.classes = json["classes"].get<int>();
  task.first = json["first"].get<int>();
  task.size = size_of(only_image_input(network));
  task.transform = parse_transform(images->second);
  if (task.first < 0 || task.first > 1 || task.channels() < 1 || task.classes > 255) {
    fail(path, ": its '", kSegmentationKey, "' is damaged");
  }
  return task;
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
    fail(options.data, ": has the folds ", known, "; say with --fold which to use");
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

Array pixel_labels(const Image& labels, const SegmentTask& task) {
  Array result = zeros({1, static_cast<int64_t>(labels.pixels.size())});
  std::transform(labels.pixels.begin(), labels.pixels.end(), result.values.begin(),
                 [&](uint8_t label) {  // class 0 has no label, whether it has a channel or not
                   return static_cast<float>(label == 0 ? -1 : int{label} - task.first);
                 });
  return result;
}

SegmentReader::SegmentReader(SegmentationSet set, SegmentTask task, SegmentParts parts)
    : set_(std::move(set)), task_(std::move(task)), parts_(parts) {}

std::optional<SegmentImage> SegmentReader::next() {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  while (begun_ < size() && ahead_.size() < std::min(kImagesAhead, cores)) {
    ahead_.push_back(std::async(std::launch::async, [this, at = begun_] { return read(at); }));
    ++begun_;
  }
  if (ahead_.empty()) return std::nullopt;
  std::future<SegmentImage> first = std::move(ahead_.front());
  ahead_.pop_front();
  return first.get();
}

SegmentImage SegmentReader::read(size_t index) const {
  const SegmentationPair& pair = set_.pairs.at(index);
  SegmentImage result{pair.name, pair.image, {}, {}, {}, {}, {}};
  if (parts_ == SegmentParts::kImage) {
    result.image = resize_and_crop(task_.transform, read_image(pair.image));
  } else {
    SegmentationSample sample = read_segmentation(set_, index, task_.transform.size);
    result.image = std::move(sample.image);
    result.labels = std::move(sample.labels);
  }
  const Image& image = result.image;
  const bool fits = task_.size[0] == 0 || task_.size == std::array{image.height, image.width};
  if (!fits) {
    fail(pair.image, ": ", image.width, " x ", image.height, " pixels, the network takes ",
         task_.size[1], " x ", task_.size[0], "; --resize makes images and labels fit");
  }
  result.x = zeros({1, 3, image.height, image.width});
  normalize_image(image, task_.transform.mean, task_.transform.deviation, result.x.values);
  if (parts_ == SegmentParts::kImage || parts_ == SegmentParts::kLabels) return result;
  const SegmentationTargetOptions target{.classes = task_.classes,
                                         .drop_unlabelled = task_.first == 1};
  result.target = blurred_labels(result.labels, target);
  const auto values = static_cast<int64_t>(result.target.values.size());
  if (parts_ == SegmentParts::kTargetAndWeights) {
    const std::vector<double> blurred(result.target.values.begin(), result.target.values.end());
    result.weights = informative_weights(blurred, blurred.size());
  }
  double_log(result.target.values);
  result.target.shape = {1, values};
  return result;
}

}  // namespace fcp
