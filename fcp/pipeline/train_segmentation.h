// Training the small segmenter (fcp/training/segmenter.h) on a set of labelled images, which are
// kept in memory.
#pragma once

#include <array>

#include "fcp/images/segmentation.h"
#include "fcp/pipeline/context.h"
#include "fcp/training/segmenter.h"

namespace fcp {

// `size`: height and width to which images and labels are resized; 0: as they are, and then all of
// the same size. An Error names an image that is not.
SegmenterResult train_segmentation(const SegmentationSet& set, const SegmenterOptions& options,
                                   std::array<int, 2> size, const Context& context);

}  // namespace fcp
