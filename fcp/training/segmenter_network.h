// A small fully convolutional network that gives each class of each pixel a number:
//
//   image ─ conv1 5×5 /2 ─ Relu ─ conv2 3×3 ─ Relu ─ conv3 3×3, every second pixel ─ Relu ─ feature
//   feature ─ conv4 3×3 ─ Relu ─ conv5 1×1 ─ logits ─ Resize ×2, bilinear ─ output
//
// With half the resolution inside and the upsampling in the head it is a miniature of the networks
// that segment photographs. A pixel of `logits` sees 21 × 21 pixels of the image. Height and
// width of the image must be even.
//
// All weights lie in one flat tensor, layer by layer, weight before bias.
// Tested by tests/training/segmenter_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

struct ConvLayer {
  std::string name;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t dilation = 1;
  torch::Tensor weight = {};  // [outputs, inputs, kernel, kernel]
  torch::Tensor bias = {};    // [outputs]

  int64_t padding() const { return dilation * (kernel - 1) / 2; }
};

class SegmenterNetwork {
 public:
  // He's initialisation: weights uniform in ±√(6 / inputs of a sum), biases 0.
  SegmenterNetwork(int64_t channels, int64_t classes, uint64_t seed);

  // Leaf of autograd's graph; forward() is differentiable in it.
  const torch::Tensor& flat() const { return flat_; }
  std::span<float> parameters();

  void set_last_bias(std::span<const float> bias);

  // [N, 3, height, width] → [N, classes, height, width]
  torch::Tensor forward(const torch::Tensor& images) const;

  // As ONNX, for images of this size; the weights are copied.
  Graph graph(int64_t height, int64_t width) const;

 private:
  // Views into the flat tensor, connected to it by autograd.
  std::vector<ConvLayer> layers() const;

  std::vector<ConvLayer> shapes_;
  torch::Tensor flat_;
};

}  // namespace fcp
