// Segmentation as regression, as the paper does it: a number for each class and pixel.
//
// Idea: the one-hot labels are blurred, so that pixels near the border of an object are undecided,
// and the double logarithm spreads (0, 1) over the real line:
//   y = 1 − ε or ε,   ỹ = G * y  (a Gaussian of kernel × kernel pixels, σ = 0.3((k − 1)/2 − 1) +
//   0.8, borders mirrored without repeating the edge),   target = log(−log ỹ),   ỹ =
//   exp(−exp(target)).
// The target falls as the class grows likely.
//
// All of it is float32, weights and sums in the order of the authors' code: 1 − 1e-6 is only 17
// units in the last place below 1, so that rounding is visible in the target: deep inside an object
// it is −13.745 where exact numbers give −13.816.
// Cost: kernel² operations per class and pixel, but none for rows a class is far from.
//
// Reference: the paper, appendix on experimental details; class weights: Paszke et al., ENet, 2016.
// Tested by tests/data/images/segmentation_target_test.cc, tests/parity/image_parity_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/images/image.h"

namespace fcp {

struct SegmentationTargetOptions {
  int classes = 20;  // class 0, without label, included
  float epsilon = 1e-6f;
  int kernel = 7;               // odd
  bool drop_unlabelled = true;  // leaves class 0 out of the result
};

// ỹ as [channels, height, width]; channels are the classes, less one where class 0 is dropped. What
// the weighted length (informative_weights of fcp/evaluation) starts from.
Array blurred_labels(const Image& labels, const SegmentationTargetOptions& options = {});

// log(−log y), in place.
void double_log(std::span<float> values);

// log(−log ỹ): what the network is trained to give.
Array segmentation_target(const Image& labels, const SegmentationTargetOptions& options = {});

// Adds the pixels of every class to `counts`, which has one number per class.
void count_labels(const Image& labels, std::span<uint64_t> counts);

// ENet's weights 1 / log(c + p), p the share of the class among all pixels: from 1 / log(c + 1) for
// a class that is everywhere to 1 / log(c) for one that is nowhere. c > 1.
std::vector<double> enet_weights(std::span<const uint64_t> counts, double c = 1.02);

// The same without class 0, which gets weight 0, and divided by their sum.
std::vector<double> loss_weights(std::span<const uint64_t> counts, double c = 1.02);

}  // namespace fcp
