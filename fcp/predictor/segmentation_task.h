// A network made ready for images whose every pixel is scored, and what must be known of them to
// read new images for it.
//
// Tested by tests/pipeline/segmentation_rows_test.cc, tests/cli/test_segment.py.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "fcp/data/array.h"
#include "fcp/images/image_transform.h"
#include "fcp/network/graph.h"

namespace fcp {

// How the images of a calibrated network are read and which of its channels are which classes. Kept
// in the network's metadata.
struct SegmentTask {
  int classes = 0;                   // of the labels, class 0 included
  int first = 1;                     // the class of the first channel: 0 where class 0 has one
  std::string output;                // the name of the network's output
  std::array<int, 2> size = {0, 0};  // height and width that the network takes; 0: any
  ImageTransform transform;

  int channels() const { return classes - first; }
};

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

}  // namespace fcp
