#include "fcp/training/segmenter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/training/adam.h"

namespace fcp {
namespace {

using Samples = std::span<const SegmentationSample>;

// Normalised as they are, without resizing.
ImageTransform segmenter_transform(const Image& image) {
  return {.resize = 0, .size = {image.height, image.width}, .crop = 0};
}

void check_samples(Samples samples) {
  if (samples.empty()) fail("no sample to train a segmenter on");
  const Image& first = samples[0].image;
  if (first.height < 2 || first.width < 2 || first.height % 2 != 0 || first.width % 2 != 0) {
    fail("segmenter: images of ", first.width, " x ", first.height,
         " pixels, expected even numbers above 0");
  }
  const auto check = [&](const Image& image, const char* what, size_t index, int channels) {
    if (image.height != first.height || image.width != first.width || image.channels != channels) {
      fail("segmenter: ", what, " of sample ", index, " (from 0): ", image.width, " x ",
           image.height, " pixels of ", image.channels, " channels, expected ", first.width, " x ",
           first.height, " of ", channels);
    }
  };
  for (size_t i = 0; i < samples.size(); ++i) {
    check(samples[i].image, "image", i, 3);
    check(samples[i].labels, "labels", i, 1);
  }
}

void check_options(const SegmenterOptions& options, int classes) {
  if (classes < 2) fail("segmenter: ", classes, " classes, expected at least 2, class 0 included");
  if (options.channels < 1 || options.epochs < 0 || options.batch < 1) {
    fail("segmenter: ", options.channels, " channels, ", options.epochs, " epochs, batches of ",
         options.batch, ", expected at least 1, 0 and 1");
  }
  if (!(options.rate > 0 && std::isfinite(options.rate))) {
    fail("segmenter: learning rate ", options.rate, ", expected above 0");
  }
  const size_t names = options.class_names.size();
  if (names != 0 && names != static_cast<size_t>(classes)) {
    fail("segmenter: ", names, " class names for ", classes, " classes");
  }
}

int largest_label(Samples samples) {
  int largest = 0;
  for (const SegmentationSample& sample : samples) {
    for (const uint8_t label : sample.labels.pixels) largest = std::max(largest, int{label});
  }
  return largest;
}

// What the optimiser sees: images [N, 3, H, W] and targets [N, classes, H, W].
struct SegmenterData {
  torch::Tensor images;
  torch::Tensor targets;
  std::vector<double> class_weights;
};

void copy_row(torch::Tensor& rows, size_t index, const Array& values) {
  std::copy(values.values.begin(), values.values.end(),
            rows.data_ptr<float>() + index * values.values.size());
}

SegmenterData prepare(Samples samples, int classes) {
  const Image& first = samples[0].image;
  const auto count = static_cast<int64_t>(samples.size());
  SegmenterData data{torch::empty({count, 3, first.height, first.width}, torch::kFloat),
                     torch::empty({count, classes, first.height, first.width}, torch::kFloat),
                     {}};
  const ImageTransform transform = segmenter_transform(first);
  std::vector<uint64_t> counts(static_cast<size_t>(classes));
  for (size_t i = 0; i < samples.size(); ++i) {
    check_interrupted();
    count_labels(samples[i].labels, counts);
    copy_row(data.images, i, transform_image(transform, samples[i].image));
    copy_row(
        data.targets, i,
        segmentation_target(samples[i].labels, {.classes = classes, .drop_unlabelled = false}));
  }
  data.class_weights = loss_weights(counts);
  return data;
}

// The output begins at each class's mean, from where the steps are shortest.
void start_at_means(SegmenterNetwork& network, const SegmenterData& data) {
  const torch::Tensor means =
      data.targets.mean({0, 2, 3}, /*keepdim=*/false, torch::kDouble).to(torch::kFloat);
  network.set_last_bias({means.data_ptr<float>(), static_cast<size_t>(means.numel())});
}

double train_step(SegmenterNetwork& network, Adam& adam, const SegmenterData& data,
                  const torch::Tensor& weights, const torch::Tensor& rows) {
  const torch::Tensor output = network.forward(data.images.index_select(0, rows));
  const torch::Tensor errors = (output - data.targets.index_select(0, rows)).square();
  const torch::Tensor loss = errors.mean({0, 2, 3}).dot(weights);
  const double value = loss.item<double>();
  if (!std::isfinite(value)) fail("segmenter: training diverged; expected a lower learning rate");
  const torch::Tensor gradient = torch::autograd::grad({loss}, {network.flat()})[0].contiguous();
  adam.step(network.parameters(),
            {gradient.data_ptr<float>(), static_cast<size_t>(gradient.numel())});
  return value;
}

std::vector<double> fit_segmenter(SegmenterNetwork& network, const SegmenterData& data,
                                  const SegmenterOptions& options, uint64_t seed,
                                  const SegmenterProgress& progress) {
  const auto count = static_cast<size_t>(data.images.size(0));
  const auto batch = static_cast<size_t>(options.batch);
  const torch::Tensor weights = torch::tensor(data.class_weights).to(torch::kFloat);
  const int64_t all_steps = segmenter_steps(count, options);
  Adam adam(network.parameters().size(), {.rate = options.rate, .weight_decay = 0});
  Random random(seed);
  int64_t steps = 0;
  std::vector<double> losses;
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const std::vector<size_t> order = random.permutation(count);
    const std::vector<int64_t> rows(order.begin(), order.end());
    const torch::Tensor shuffled = torch::tensor(rows, torch::kLong);
    double sum = 0;
    for (size_t start = 0; start < count; start += batch) {
      check_interrupted();
      const auto size = static_cast<int64_t>(std::min(batch, count - start));
      adam.set_rate(options.rate *
                    (1 - static_cast<double>(steps++) / static_cast<double>(all_steps)));
      const double loss = train_step(network, adam, data, weights,
                                     shuffled.narrow(0, static_cast<int64_t>(start), size));
      sum += loss * static_cast<double>(size);
      if (progress) progress({epoch, static_cast<int64_t>(start / batch) + 1, loss});
    }
    losses.push_back(sum / static_cast<double>(count));
  }
  return losses;
}

}  // namespace

SegmenterResult train_segmenter(Samples samples, const SegmenterOptions& options,
                                const SegmenterProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  check_samples(samples);
  const int classes = options.classes == 0 ? largest_label(samples) + 1 : options.classes;
  check_options(options, classes);
  const SegmenterData data = prepare(samples, classes);

  Random seeds(options.seed);
  SegmenterNetwork network(options.channels, classes, seeds.bits());
  start_at_means(network, data);
  SegmenterResult result;
  result.training_loss = fit_segmenter(network, data, options, seeds.bits(), progress);
  result.class_weights = data.class_weights;
  const Image& first = samples[0].image;
  result.graph = network.graph(first.height, first.width);
  result.graph.metadata[kImagesKey] = transform_text(segmenter_transform(first));
  if (!options.class_names.empty()) {
    result.graph.metadata[kClassesKey] = class_names_text(options.class_names);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result.seconds = elapsed.count();
  return result;
}

int64_t segmenter_steps(size_t samples, const SegmenterOptions& options) {
  return options.epochs * ((static_cast<int64_t>(samples) + options.batch - 1) / options.batch);
}

namespace {

int64_t weight_count(const ConvLayer& layer) {
  return layer.outputs * layer.inputs * layer.kernel * layer.kernel;
}

TensorInfo plane_info(const std::string& name, int64_t channels, int64_t height, int64_t width) {
  return {.name = name,
          .type = ElementType::kFloat,
          .shape = {kDynamic, channels, height, width},
          .dimension_names = {"batch", "", "", ""}};
}

Node conv_node(const ConvLayer& layer, const std::string& input, const std::string& output) {
  const int64_t padding = layer.padding();
  return {.name = layer.name + "/Conv",
          .op = "Conv",
          .domain = "",
          .inputs = {input, layer.name + ".weight", layer.name + ".bias"},
          .outputs = {output},
          .attributes = {{"kernel_shape", std::vector<int64_t>{layer.kernel, layer.kernel}},
                         {"strides", std::vector<int64_t>{layer.stride, layer.stride}},
                         {"dilations", std::vector<int64_t>{layer.dilation, layer.dilation}},
                         {"pads", std::vector<int64_t>{padding, padding, padding, padding}}}};
}

Node relu_node(const std::string& input, const std::string& output) {
  return {.name = output + "/Relu",
          .op = "Relu",
          .domain = "",
          .inputs = {input},
          .outputs = {output},
          .attributes = {}};
}

Node resize_node() {
  return {.name = "output/Resize",
          .op = "Resize",
          .domain = "",
          .inputs = {"logits", "", "scales"},
          .outputs = {"output"},
          .attributes = {{"mode", std::string("linear")},
                         {"coordinate_transformation_mode", std::string("half_pixel")}}};
}

}  // namespace

SegmenterNetwork::SegmenterNetwork(int64_t channels, int64_t classes, uint64_t seed) {
  shapes_ = {{.name = "conv1", .inputs = 3, .outputs = 16, .kernel = 5, .stride = 2},
             {.name = "conv2", .inputs = 16, .outputs = channels},
             {.name = "conv3", .inputs = channels, .outputs = channels, .dilation = 2},
             {.name = "conv4", .inputs = channels, .outputs = channels},
             {.name = "conv5", .inputs = channels, .outputs = classes, .kernel = 1}};
  int64_t count = 0;
  for (const ConvLayer& layer : shapes_) count += weight_count(layer) + layer.outputs;
  flat_ = torch::zeros({count}, torch::kFloat);
  Random random(seed);
  float* next = flat_.data_ptr<float>();
  for (const ConvLayer& layer : shapes_) {
    const int64_t weights = weight_count(layer);
    const double bound =
        std::sqrt(6.0 * static_cast<double>(layer.outputs) / static_cast<double>(weights));
    for (int64_t i = 0; i < weights; ++i) {
      *next++ = static_cast<float>(bound * (2 * random.uniform() - 1));
    }
    next += layer.outputs;
  }
  flat_.set_requires_grad(true);
}

std::span<float> SegmenterNetwork::parameters() {
  return {flat_.data_ptr<float>(), static_cast<size_t>(flat_.numel())};
}

void SegmenterNetwork::set_last_bias(std::span<const float> bias) {
  std::copy(bias.begin(), bias.end(), parameters().last(bias.size()).begin());
}

std::vector<ConvLayer> SegmenterNetwork::layers() const {
  std::vector<ConvLayer> layers = shapes_;
  int64_t start = 0;
  for (ConvLayer& layer : layers) {
    const int64_t weights = weight_count(layer);
    layer.weight = flat_.narrow(0, start, weights)
                       .view({layer.outputs, layer.inputs, layer.kernel, layer.kernel});
    layer.bias = flat_.narrow(0, start + weights, layer.outputs);
    start += weights + layer.outputs;
  }
  return layers;
}

torch::Tensor SegmenterNetwork::forward(const torch::Tensor& images) const {
  torch::Tensor value = images;
  for (const ConvLayer& layer : layers()) {
    if (layer.name != "conv1") value = torch::relu(value);
    value = torch::conv2d(value, layer.weight, layer.bias, layer.stride, layer.padding(),
                          layer.dilation);
  }
  const std::vector<int64_t> size = {images.size(2), images.size(3)};
  return torch::upsample_bilinear2d(value, torch::IntArrayRef(size), /*align_corners=*/false, 2.0,
                                    2.0);
}

Graph SegmenterNetwork::graph(int64_t height, int64_t width) const {
  const std::vector<std::string> activations = {"image", "hidden1", "hidden2", "feature",
                                                "hidden4"};
  Graph graph;
  graph.name = "fcp_segmenter";
  const std::vector<ConvLayer> all = layers();
  for (size_t i = 0; i < all.size(); ++i) {
    const ConvLayer& layer = all[i];
    const bool last = i + 1 == all.size();
    graph.initializers[layer.name + ".weight"] = layer.weight.detach().clone();
    graph.initializers[layer.name + ".bias"] = layer.bias.detach().clone();
    graph.nodes.push_back(conv_node(layer, activations[i], last ? "logits" : layer.name));
    if (!last) graph.nodes.push_back(relu_node(layer.name, activations[i + 1]));
  }
  graph.initializers["scales"] = torch::tensor({1.0f, 1.0f, 2.0f, 2.0f});
  graph.nodes.push_back(resize_node());
  graph.inputs = {plane_info("image", 3, height, width)};
  graph.outputs = {plane_info("output", all.back().outputs, height, width)};
  sort_and_check(graph);
  return graph;
}

}  // namespace fcp
