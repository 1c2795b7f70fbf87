// From an image of any size to the numbers a network expects: resize, crop, normalise, as
// torchvision's Resize, CenterCrop, ToTensor and Normalize do with Pillow images, bit for bit up to
// the last division.
//
// Idea of the resize: an output pixel is the mean of the input pixels under a triangle around it,
// which is as wide as the pixel it makes when shrinking (so no detail is skipped: "antialiased")
// and one input pixel wide when growing:
//   out[i] = Σ_j w_ij in[j],   w_ij ∝ max(0, 1 − |j + ½ − (i + ½)s| / max(s, 1)),   s = in / out,
// first along rows, then along columns, weights in 22-bit fixed point and 8-bit values between the
// two passes, as Pillow computes. Cost: O(height · width · max(s, 1)).
//
// Reference: Pillow, src/libImaging/Resample.c; torchvision, transforms/functional.py.
// Tested by tests/data/images/image_transform_test.cc, tests/parity/image_parity_test.cc.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/images/image.h"

namespace fcp {

// To exactly this size.
Image resize_bilinear(const Image& image, int height, int width);
// Every pixel is one of the input's: for labels.
Image resize_nearest(const Image& image, int height, int width);
// The shorter side becomes `size` and the longer one keeps the proportion, rounded down.
Image resize_short_side(const Image& image, int size);

// The middle, padded with zeros where the image is smaller. Half a pixel is rounded to even.
Image center_crop(const Image& image, int height, int width);

// RGB to planes: out [3, height, width] = (pixel / 255 − mean) / deviation of each channel.
void normalize_image(const Image& image, const std::array<float, 3>& mean,
                     const std::array<float, 3>& deviation, std::span<float> out);

struct ImageTransform {
  int resize = 256;              // the shorter side; 0: none
  std::array<int, 2> size = {};  // or height and width whatever the proportion; 0: none
  int crop = 224;                // a square in the middle; 0: none
  std::array<float, 3> mean = {0.485f, 0.456f, 0.406f};  // of ImageNet, in [0, 1]
  std::array<float, 3> deviation = {0.229f, 0.224f, 0.225f};
};

// Fails where sizes are negative, `resize` and `size` are both asked for or a deviation is not
// positive.
void check_transform(const ImageTransform& transform);

// Height and width after the transform of an image of these; {0, 0} as input where they are not
// known gives {0, 0} where they are needed.
std::array<int, 2> transformed_size(const ImageTransform& transform, std::array<int, 2> size);

// All but the normalisation.
Image resize_and_crop(const ImageTransform& transform, Image image);

// The whole: [3, height, width].
Array transform_image(const ImageTransform& transform, const Image& image);

// An ImageTransform and class names as text (JSON) and back, so that a calibrated network carries
// how its images are to be read. Tested by tests/data/images/image_transform_test.cc.

// The keys under which calibration keeps the texts in the network's metadata.
constexpr char kImagesKey[] = "fcp.images";
constexpr char kClassesKey[] = "fcp.classes";  // a JSON list of names

std::string transform_text(const ImageTransform& transform);

// An Error where the text is damaged.
ImageTransform parse_transform(const std::string& text);

std::string class_names_text(const std::vector<std::string>& names);
std::vector<std::string> parse_class_names(const std::string& text);

}  // namespace fcp
