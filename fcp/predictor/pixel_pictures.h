// An image of pixels with its regions as numbers and pictures: how unsure the network is of each
// pixel, and a strip image | prediction | uncertainty.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/images/segmentation.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

// Regions are those of one image: a batch of one row.

// One number per pixel in [0, 1]: of bands their length as probabilities, averaged over the
// classes; of sets the share of all other labels that are in.
std::vector<float> pixel_uncertainty(const Regions& regions, const SegmentTask& task);

// The class that the network answers for each pixel.
Image predicted_classes(const Image& image, const Regions& regions, const SegmentTask& task);

// Nonzero where a pixel is not in: its label outside its set, or one of its channels outside its
// band. `y` is the image's row: labels of pixels, or the target of bands. Pixels without a label
// are not missed.
std::vector<uint8_t> missed_pixels(const Regions& regions, std::span<const float> y,
                                   const SegmentTask& task);

// The strip. The map's lightest colour stands for the image's largest uncertainty.
Image pixel_picture(const Image& image, const Regions& regions, const SegmentTask& task,
                    std::span<const std::string> class_names);

// Row `i` of a batch's regions as a batch of its own.
Regions region_of_row(const Regions& regions, size_t i);

}  // namespace fcp
