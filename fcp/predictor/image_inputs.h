// Images for networks that do not take planes of normalised numbers: TensorFlow's [N, H, W, 3], and
// pixels as uint8.
//
// Tested by tests/predictor/image_inputs_test.cc.
#pragma once

#include <memory>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// Whether the input takes pixels as they are, 0 to 255.
bool takes_pixels(const TensorInfo& input);

// The transform that leaves pixels as they are.
ImageTransform pixel_transform();

// Rows [3, H, W] in the order of the input's axes, and rounded where it takes pixels.
std::unique_ptr<RowSource> images_for_input(std::unique_ptr<RowSource> rows,
                                            const TensorInfo& input);

}  // namespace fcp
