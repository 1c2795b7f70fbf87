// A set of labels for each pixel of an image: lac, pixel by pixel.
//
//   p_c(v)       = softmax of the logits of the pixel, or exp(−exp(output_c)) where the network was
//                  trained on the double logarithm (fcp/images/segmentation_target.h)
//   score(v, y)  = the ⌈q P⌉-th smallest, over the P labelled pixels, of 1 − p_label
//   region(v, r) = for each pixel all labels with 1 − p_c ≤ r
//
// so that score ≤ r exactly where at least the share q of the labelled pixels have their label in
// their set. Pixels without a label are neither counted nor missed; an image without any label has
// the score −∞. By exp(−exp(·)) the channels are judged each by itself and need not sum to one.
//
// Assumes one channel a class and a single radius for all pixels. Cost: one forward.
// Reference: lac.h; the quantile over pixels: pixels.h. Tested by tests/scores/pixel_sets_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

// lac with `pixels` > 0. Truths are [N, P]: labels 0 … C − 1, or −1 where there is none; regions
// have members [N, C, P] and predictions [N, P].
std::unique_ptr<Score> make_pixel_sets(const ScoreOptions& options,
                                       std::shared_ptr<const Network> head);

}  // namespace fcp
