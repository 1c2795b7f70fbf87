#include "fcp/predictor/segmentation_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/file_witness.h"
#include "fcp/data/images/heat_map.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/data/number.h"
#include "fcp/evaluate/measures/interval_evaluation.h"
#include "fcp/interval.h"
#include "fcp/methods/method.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

constexpr char kSegmentationKey[] = "fcp.segmentation";

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
    fail_option("output", "the network has ", network.outputs.size(),
                " outputs; choose one of them");
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
  fail_option("output", "the network has no output '", name, "'");
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

ImageTransform segment_transform(const SegmentTaskOptions& options, const Graph& network,
                                 std::array<int, 2> size) {
  ImageTransform transform = options.transform.value_or(ImageTransform{});
  const auto own = network.metadata.find(kImagesKey);
  if (!options.transform && own != network.metadata.end()) {
    transform = parse_transform(own->second);
  }
  transform.resize = transform.crop = 0;
  transform.size = {0, 0};
  if (options.resize) {
    if (size[0] == 0) fail_option("resize", "the network takes images of any size");
    transform.size = size;
  }
  check_transform(transform);
  return transform;
}

// Of all classes; those of the channels are the last of them.
std::vector<double> of_channels(std::vector<double> weights, const SegmentTask& task) {
  weights.erase(weights.begin(), weights.begin() + task.first);
  return weights;
}

}  // namespace

int output_channels(const Graph& network, const std::string& output) {
  return static_cast<int>(image_output(network, output).shape[1]);
}

SegmentTask prepare_network(Graph& network, const SegmentTaskOptions& options, int classes) {
  const TensorInfo& input = only_image_input(network);
  const TensorInfo& output = image_output(network, options.output);
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
         " classes; expected one per class, that of class 0 (without label) included or not");
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

std::vector<double> channel_weights(const SegmentationSet& set, const SegmentTask& task,
                                    const Context& context) {
  std::vector<uint64_t> counts(static_cast<size_t>(task.classes), 0);
  Stage stage(context, "labels", set.pairs.size());
  for (size_t i = 0; i < set.pairs.size(); ++i) {
    check_interrupted();
    count_labels(read_segmentation(set, i, task.transform.size).labels, counts);
    stage.advance(1);
  }
  return of_channels(loss_weights(counts), task);
}

std::vector<double> read_channel_weights(const std::string& csv, const SegmentTask& task) {
  const CsvOptions header{.header = CsvHeader::kYes};
  const std::vector<std::string> classes = read_csv_column(csv, "class", header);
  const std::vector<std::string> values = read_csv_column(csv, "loss_weight", header);
  std::vector<double> weights(static_cast<size_t>(task.classes), std::nan(""));
  for (size_t i = 0; i < classes.size(); ++i) {
    double number = -1, weight = -1;
    const bool good = parse_number(classes[i], number) && parse_number(values[i], weight) &&
                      number >= 0 && number < task.classes && weight >= 0;
    if (!good) {
      fail(csv, ": row ", i + 1, ": found class ", classes[i], " with weight ", values[i],
           ", expected classes 0 to ", task.classes - 1, " and weights of at least 0");
    }
    weights[static_cast<size_t>(number)] = weight;
  }
  weights = of_channels(std::move(weights), task);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isnan(weights[i])) {
      fail(csv, ": no weight of class ", i + static_cast<size_t>(task.first));
    }
  }
  return weights;
}

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

namespace {

constexpr int kStripGap = 4;  // pixels between the pictures of a strip

torch::Tensor host_floats(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kFloat).contiguous();
}

std::span<const float> floats_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

// Of bands the channel whose output is least, because log(−log p) falls as p grows.
Image predicted_classes(const Image& image, const Regions& regions, const SegmentTask& task) {
  const torch::Tensor channels = regions.members.defined()
                                     ? regions.prediction[0]
                                     : regions.prediction.reshape({task.channels(), -1}).argmin(0);
  const torch::Tensor classes = (channels + task.first).to(torch::kCPU, torch::kByte).contiguous();
  Image result = blank_image(image.height, image.width, 1);
  std::copy_n(classes.data_ptr<uint8_t>(), classes.numel(), result.pixels.begin());
  return result;
}

std::vector<uint8_t> missed_pixels(const Regions& regions, std::span<const float> y,
                                   const SegmentTask& task) {
  const auto channels = static_cast<size_t>(task.channels());
  if (regions.members.defined()) {
    const torch::Tensor members = host_members(regions);  // [1, C, P]
    const bool* in = members.data_ptr<bool>();
    std::vector<uint8_t> missed(y.size());
    for (size_t i = 0; i < y.size(); ++i) {
      missed[i] = y[i] >= 0 && !in[static_cast<size_t>(y[i]) * y.size() + i];
    }
    return missed;
  }
  const torch::Tensor lower = host_doubles(regions.lower), upper = host_doubles(regions.upper);
  std::vector<uint8_t> missed(y.size() / channels);
  for (size_t i = 0; i < y.size(); ++i) {
    const Interval band{numbers(lower)[i], numbers(upper)[i]};
    if (!band.contains(y[i])) missed[i % missed.size()] = 1;
  }
  return missed;
}

std::vector<float> pixel_uncertainty(const Regions& regions, const SegmentTask& task) {
  const auto channels = static_cast<size_t>(task.channels());
  if (regions.members.defined()) {
    const torch::Tensor size = regions.members[0].to(torch::kFloat).sum(0) - 1;
    const torch::Tensor share =
        host_floats(size.clamp_min(0) / std::max<double>(1, task.channels() - 1));
    return {share.data_ptr<float>(), share.data_ptr<float>() + share.numel()};
  }
  const torch::Tensor lower = host_floats(regions.lower), upper = host_floats(regions.upper);
  return band_uncertainty(floats_of(lower), floats_of(upper), channels,
                          static_cast<size_t>(lower.numel()) / channels);
}

Image pixel_picture(const Image& image, const Regions& regions, const SegmentTask& task,
                    std::span<const std::string> class_names) {
  const std::vector<float> uncertainty = pixel_uncertainty(regions, task);
  const float largest = *std::max_element(uncertainty.begin(), uncertainty.end());
  const Image map = heat_map(uncertainty, image.height, image.width, 0, largest > 0 ? largest : 1);
  const Image classes = colour_labels(predicted_classes(image, regions, task), class_names);
  const Image parts[] = {image, classes, map};
  return side_by_side(parts, kStripGap);
}

Regions region_of_row(const Regions& regions, size_t i) {
  const auto row = [i](const torch::Tensor& all) {
    return all.defined() ? all.narrow(0, static_cast<int64_t>(i), 1) : all;
  };
  Regions one = regions;  // whatever else a batch carries
  one.prediction = row(regions.prediction);
  one.lower = row(regions.lower);
  one.upper = row(regions.upper);
  one.members = row(regions.members);
  return one;
}

}  // namespace fcp
