#include "fcp/training/segmenter_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/random.h"

namespace fcp {
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
