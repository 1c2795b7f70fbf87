#include "fcp/pipeline/train_segmentation.h"

#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"

namespace fcp {
namespace {

std::vector<SegmentationSample> read_samples(const SegmentationSet& set, std::array<int, 2> size,
                                             const Context& context) {
  Stage stage(context, "read", set.pairs.size());
  std::vector<SegmentationSample> samples;
  for (size_t i = 0; i < set.pairs.size(); ++i) {
    check_interrupted();
    samples.push_back(read_segmentation(set, i, size));
    const Image &image = samples.back().image, &first = samples.front().image;
    if (image.height != first.height || image.width != first.width) {
      fail(set.pairs[i].image, ": ", image.width, " x ", image.height, " pixels, expected ",
           first.width, " x ", first.height, " as in ", set.pairs[0].image,
           ", or a size to which all are resized");
    }
    stage.advance(1);
  }
  return samples;
}

}  // namespace

SegmenterResult train_segmentation(const SegmentationSet& set, const SegmenterOptions& options,
                                   std::array<int, 2> size, const Context& context) {
  const std::vector<SegmentationSample> samples = read_samples(set, size, context);
  Stage stage(context, "train", static_cast<size_t>(segmenter_steps(samples.size(), options)));
  return train_segmenter(samples, options, [&](const SegmenterStep& step) {
    stage.advance(1, [&] { return concat("epoch ", step.epoch, ", loss ", step.loss); });
  });
}

}  // namespace fcp
