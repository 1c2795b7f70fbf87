// Training a small network that segments images, on samples in memory: a miniature of the paper's
// Cityscapes network for tests and demonstrations.
//
//   SegmenterResult trained = train_segmenter(scenes, {.classes = kSceneClasses});
//   write_onnx(trained.graph, "segmenter.onnx");
//
// Idea: regression on the paper's target log(−log ỹ) (fcp/data/images/segmentation_target.h) with
// one weight a class, so that small things count as much as large ones:
//   loss = Σ_c w_c · mean over images and pixels of (output_c − target_c)²,   w = loss_weights
// by Adam, whose rate falls linearly to 0. Class 0, what has no label, has no weight; its channel
// is there, as in the paper's networks, and means nothing.
//
// The graph (segmenter_network.h) takes images normalised as ImageTransform does by default, and
// says so in its metadata. Cost: 5 ms of one core an image of 64 × 128 and epoch; images and
// targets stay in memory, 4 · (3 + classes) bytes per pixel. Same samples, options and thread
// count: same bits. Tested by tests/training/segmenter_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

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

}  // namespace fcp
