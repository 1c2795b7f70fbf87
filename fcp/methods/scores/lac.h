// The least ambiguous set classifier: labels by their probability alone.
//
//   p            = softmax(logits / temperature), in double precision
//   score(v, k)  = 1 − p_k, and 0 for the network's answer (labels.h)
//   region(v, r) = all labels with probability at least 1 − r, and the answer
//
// Of all scores it gives the smallest sets where the probabilities are true; the sets are as often
// too small for hard rows as too large for easy ones. With a share of pixels
// asked for (SharedOptions::pixels) every pixel of an image has its set (below).
//
// Cost: one forward and C exponentials per row. Reference: Sadinle, Lei, Wasserman, Least Ambiguous
// Set-Valued Classifiers With Bounded Error Levels, 2019. Tested by
// tests/methods/scores/labels_test.cc and label_law_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct LacOptions {
  static constexpr char kName[] = "lac";

  double temperature = 1;   // of the softmax
  bool double_log = false;  // of pixels: p = exp(−exp(output)) and no softmax
  bool allow_empty = false;

  static std::vector<Option> rows();
  bool operator==(const LacOptions&) const = default;
};

std::unique_ptr<Score> make_score(const LacOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// A set of labels for each pixel of an image: lac, pixel by pixel.
//
//   p_c(v)       = softmax of the logits of the pixel, or exp(−exp(output_c)) where the network was
//                  trained on the double logarithm (fcp/data/images/segmentation.h)
//   score(v, y)  = the ⌈q P⌉-th smallest, over the P labelled pixels, of 1 − p_label, or 0 for the
//                  label of the largest p_c, unless sets may be empty
//   region(v, r) = for each pixel all labels whose own number is at most r
//
// so that score ≤ r exactly where at least the share q of the labelled pixels have their label in
// their set. Pixels without a label are neither counted nor missed; an image without any label has
// the score −∞. By exp(−exp(·)) the channels are judged each by itself and need not sum to one.
//
// Assumes one channel a class and a single radius for all pixels. Cost: one forward.
// The quantile over pixels: outputs.h. Tested by tests/methods/scores/pixel_sets_test.cc.
//
// Truths are [N, P]: labels 0 … C − 1, or −1 where there is none; regions have members [N, C, P]
// and predictions [N, P].

}  // namespace fcp
