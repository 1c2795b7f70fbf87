// Which images of a folder are used: the folds asked for, or the one that a step usually takes.
//
// Tested by tests/predictor/segmentation_rows_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/data/images/segmentation.h"

namespace fcp {

struct SegmentDataOptions {
  std::string data;                // a folder of a known layout; without labels any folder or file
  std::vector<std::string> folds;  // empty: the usual one of a step
};

// The pairs of image and labels in the folds asked for. Where none are, those of fold `usual`, or
// everything where the layout has no folds; an Error where there are others.
SegmentationSet open_labelled(const SegmentDataOptions& options, const std::string& usual,
                              int classes);

// The images alone, of a layout or of any folder, or a single one; labels are not looked for.
SegmentationSet open_unlabelled(const SegmentDataOptions& options, int classes);

}  // namespace fcp
