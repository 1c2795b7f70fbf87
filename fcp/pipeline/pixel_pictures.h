// An image of pixels with its regions as numbers and pictures: how unsure the network is of each
// pixel, and a strip image | prediction | uncertainty.
#pragma once

#include <vector>

#include "fcp/images/image.h"
#include "fcp/pipeline/segmentation_task.h"
#include "fcp/scores/score.h"

namespace fcp {

// Regions are those of one image: a batch of one row.

// One number per pixel in [0, 1]: of bands their length as probabilities, averaged over the
// classes; of sets the share of all other labels that are in.
std::vector<float> pixel_uncertainty(const Regions& regions, const SegmentTask& task);

struct PixelPicture {
  Image strip;
  double largest = 0;  // uncertainty, which the map's lightest colour stands for
};
PixelPicture pixel_picture(const Image& image, const Regions& regions, const SegmentTask& task);

// Row `i` of a batch's regions as a batch of its own.
Regions region_of_row(const Regions& regions, size_t i);

}  // namespace fcp
