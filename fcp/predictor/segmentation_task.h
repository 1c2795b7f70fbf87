// A network made ready for images whose every pixel is scored, and what must be known of them to
// read new images for it.
//
// Tested by tests/predictor/segmentation_rows_test.cc, tests/cli/test_segment.py.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fcp/data/images/segmentation.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/context.h"

namespace fcp {

struct SegmentTaskOptions {
  std::string output{};          // of the network; empty: its only one
  bool keep_unlabelled = false;  // class 0 keeps its channel
  bool resize = false;           // images and labels, to what the network takes
  // Of which mean and deviation are used; none: the network's own, or ImageNet's.
  std::optional<ImageTransform> transform{};
};

// The channels of the output, named or the only one. An Error where it is not one of images.
int output_channels(const Graph& network, const std::string& output);

// Cuts the channel of class 0 off the output, so that nothing after it needs to know of it; writes
// into the metadata what parse_task reads. `classes` are those of the data; a network may have a
// channel for each of them, or for all but class 0.
SegmentTask prepare_network(Graph& network, const SegmentTaskOptions& options, int classes);

// Of a calibrated network. An Error names the file where it was not calibrated for segmentation.
SegmentTask parse_task(const Graph& network, const std::string& path);

// The weight of each channel in the surrogate's squared error of pixels: classes that are seldom
// weigh more. ENet's weights (loss_weights of fcp/data/images/segmentation_target.h) of the labels
// of a set, or those of a CSV file with the columns class and loss_weight; class 0 need not be
// there unless it has a channel.
std::vector<double> channel_weights(const SegmentationSet& set, const SegmentTask& task,
                                    const Context& context);
std::vector<double> read_channel_weights(const std::string& csv, const SegmentTask& task);

}  // namespace fcp
