// What the verbs of `fcp segment` share: a network made ready for images whose every pixel is
// scored, and the images themselves, read one after the other a few ahead of their use.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/base/error.h"
#include "fcp/data/array.h"
#include "fcp/images/image_transform.h"
#include "fcp/images/segmentation.h"
#include "fcp/network/graph.h"

namespace fcp {

struct SegmentDataOptions {
  std::string data;
  std::vector<std::string> folds;
  int classes = 0;  // 0: the network's channels
  bool keep_unlabelled = false;
  bool resize = false;
  ImageTransform transform = {.resize = 0, .crop = 0};
  bool transform_given = false;  // otherwise the network's own, where it carries one
};

void add_segment_data(CLI::App& verb, SegmentDataOptions& options);

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

// The channels of the output, named or the only one. An Error where it is not one of images.
int output_channels(const Graph& network, const std::string& output);

// Cuts the channel of class 0 off the output (named, or the only one), so that nothing after it
// needs to know of it; writes into the metadata what parse_task reads. `classes` are those of the
// data; a network may have a channel for each of them, or for all but class 0.
SegmentTask prepare_network(Graph& network, const SegmentDataOptions& options,
                            const std::string& output, int classes);

// Of a calibrated network. An Error names the file where it was not calibrated by these verbs.
SegmentTask parse_task(const Graph& network, const std::string& path);

// The pairs of image and labels in the folds asked for. Where none are, those of fold `usual`, or
// everything where the layout has no folds; an Error where there are others.
SegmentationSet open_labelled(const SegmentDataOptions& options, const std::string& usual,
                              int classes);

// The images alone, of a layout or of any folder, or a single one; labels are not looked for.
SegmentationSet open_unlabelled(const SegmentDataOptions& options, int classes);

struct SegmentImage {
  std::string name;
  std::string path;
  Image image;                  // RGB, in the size of the network's output
  Image labels;                 // classes; where they are read
  Array x;                      // [1, 3, H, W]
  Array target;                 // [1, C·P]; bands
  std::vector<double> weights;  // [C·P] of the weighted length; evaluation of bands
};

enum class SegmentParts { kImage, kLabels, kTarget, kTargetAndWeights };

// Reads the set in its order, in threads ahead of the consumer. Memory holds a few images.
class SegmentReader {
 public:
  SegmentReader(SegmentationSet set, SegmentTask task, SegmentParts parts);

  size_t size() const { return set_.pairs.size(); }
  std::optional<SegmentImage> next();  // nothing after the last

 private:
  SegmentImage read(size_t index) const;

  SegmentationSet set_;
  SegmentTask task_;
  SegmentParts parts_;
  size_t begun_ = 0;
  std::deque<std::future<SegmentImage>> ahead_;
};

// Labels as a score of pixels takes them: [1, P], counted from the first channel, −1 for none.
Array pixel_labels(const Image& labels, const SegmentTask& task);

// What `work` returns; its Errors name the image.
template <typename Work>
auto of_image(const SegmentImage& image, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail(image.path, ": ", error.what());
  }
}

}  // namespace fcp
