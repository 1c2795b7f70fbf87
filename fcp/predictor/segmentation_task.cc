#include "fcp/predictor/segmentation_task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/images/image_text.h"
#include "fcp/data/images/segmentation_target.h"
#include "fcp/data/number.h"

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

}  // namespace fcp
