// Pixels: what the score of a whole image counts.
//
// An output [N, C, H, W] has P = H·W pixels of C channels; an output [N, K] has K pixels of one
// channel each. A pixel is in a region where all its channels are. Where the share q of the pixels
// is asked for, an image is within radius r when at least ⌈q P⌉ of its pixels are in the region
// of radius r:
//
//   score(v, y) = the ⌈q P⌉-th smallest over pixels of the largest score over channels
//
// so that the law of score.h becomes: share of pixels in region(v, r) ≥ q ⟺ score(v, y) ≤ r. With
// q = 1 it is the law of the whole. docs/mathematics.md says what is then guaranteed.
// Tested by tests/methods/scores/pixels_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include <torch/types.h>

#include "fcp/conformal/pixel_share.h"

namespace fcp {

struct PixelShape {
  int64_t channels = 1;
  int64_t count = 1;  // P
};

// Of one output, [N, C, …] or [N, K].
PixelShape pixel_shape(const torch::Tensor& output);

// inside [N, C·P] bool → [N] bool: enough pixels have all their channels in.
torch::Tensor enough_pixels(const torch::Tensor& inside, const PixelShape& shape, double share);

// The scores of the outputs [N, C·P] → that of the image [N]; NaN where one of them is.
torch::Tensor pixel_quantile(const torch::Tensor& scores, const PixelShape& shape, double share);

// The share that the option `pixels` of the score `name` means: 0 stands for 1, the whole. An Error
// where it is not a share.
double pixel_share(double pixels, const std::string& name);

}  // namespace fcp
