// Training a small network that segments images, on samples in memory: a miniature of the paper's
// Cityscapes network for tests and demonstrations.
//
//   SegmenterResult trained = train_segmenter(scenes, {.classes = kSceneClasses});
//   write_onnx(trained.graph, "segmenter.onnx");
//
// Idea: regression on the paper's target log(−log ỹ) (fcp/data/images/segmentation.h) with
// one weight a class, so that small things count as much as large ones:
//   loss = Σ_c w_c · mean over images and pixels of (output_c − target_c)²,   w = loss_weights
// by Adam, whose rate falls linearly to 0. Class 0, what has no label, has no weight; its channel
// is there, as in the paper's networks, and means nothing.
//
// The graph takes images normalised as ImageTransform does by default, and
// says so in its metadata. Cost: 5 ms of one core an image of 64 × 128 and epoch; images and
// targets stay in memory, 4 · (3 + classes) bytes per pixel. Same samples, options and thread
// count: same bits. Tested by tests/training/segmenter_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/images/segmentation.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

struct SegmenterOptions {
  int classes = 0;        // class 0 included; 0: the largest label + 1
  int64_t channels = 24;  // of the feature
  int64_t epochs = 10;
  int64_t batch = 2;
  double rate = 6e-3;
  uint64_t seed = 0;
  std::vector<std::string> class_names{};  // kept in the graph; one per class, or none
};

struct SegmenterResult {
  Graph graph;
  std::vector<double> training_loss;  // mean over the batches of each epoch
  std::vector<double> class_weights;  // of the loss
  double seconds = 0;
};

struct SegmenterStep {
  int64_t epoch = 0;  // from 1
  int64_t batch = 0;  // of the epoch, from 1
  double loss = 0;    // of this batch
};
using SegmenterProgress = std::function<void(const SegmenterStep&)>;

// All samples have the size of the first, even in height and width. `progress` is called after
// every batch: segmenter_steps times. Wrong samples or options are an Error; Ctrl-C leaves as
// Interrupted.
SegmenterResult train_segmenter(std::span<const SegmentationSample> samples,
                                const SegmenterOptions& options = {},
                                const SegmenterProgress& progress = {});

int64_t segmenter_steps(size_t samples, const SegmenterOptions& options);

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
