// Pictures of numbers and labels: heat maps, coloured classes, and several of them side by side.
//
// The colours of a heat map run from a dark blue to a pale yellow through red. Their lightness (L*
// of CIELAB) rises evenly from 6 to 94, so that equal differences of the numbers look equal, in
// print without colours too.
// Tested by tests/data/images/heat_map_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/data/images/image.h"

namespace fcp {

// The colour of a share in [0, 1], red, green and blue; beyond its ends that of the end. NaN is
// grey.
std::array<uint8_t, 3> heat_colour(float share);

// RGB: values [height, width], those up to `low` in the darkest and from `high` on in the lightest
// colour.
Image heat_map(std::span<const float> values, int height, int width, float low, float high);

// How unsure a segmentation is of a pixel, as the paper shows it: the bands of its classes, given
// on the scale of log(−log p), mapped back to probabilities:
//   uncertainty = mean over classes of exp(−exp(lower)) − exp(−exp(upper))
// From [channels, pixels] to [pixels], each in [0, 1]: infinite bands give 1.
std::vector<float> band_uncertainty(std::span<const float> lower, std::span<const float> upper,
                                    size_t channels, size_t pixels);

// A class that is called as one of Cityscapes has the colour that it has there; of others 0 is
// black, and the next ones have hues that lie far apart from one class to the next.
std::array<uint8_t, 3> class_colour(int label, std::string_view name = {});

// Labels in the colours of their classes, RGB. Names are those of class 0, 1, …, where there are
// any.
Image colour_labels(const Image& labels, std::span<const std::string> names = {});

// Where something lies: the picture in light grey, the marked pixels in a strong red. marks is
// [height, width].
Image mark_pixels(const Image& image, std::span<const uint8_t> marks);

// From left to right with so many grey pixels between them. All are of one height; grey ones become
// RGB.
Image side_by_side(std::span<const Image> images, int gap = 2);

}  // namespace fcp
