// Where each place of a resized axis takes its value from: a place of the input by a coordinate
// transformation, then the nearest value or the neighbours to interpolate between. With
// L places in and `size` places out, place x looks at
//
//   half_pixel            (x + ½) / scale − ½
//   pytorch_half_pixel    the same, but 0 where size = 1
//   half_pixel_symmetric  the same, centred: + L/2 · (1 − size / (scale · L))
//   align_corners         x · (L − 1) / (size − 1), 0 where size = 1
//   asymmetric            x / scale
//   tf_half_pixel_for_nn  (x + ½) / scale
//
// and beyond an edge at the edge. Tested by tests/nn/ops/resize_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

enum class Coordinates {
  kHalfPixel,
  kPytorchHalfPixel,
  kHalfPixelSymmetric,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixel
};

// kSimple is what runtimes do before opset 11, where no attribute says it: down when the axis
// grows, up when it shrinks.
enum class Rounding { kPreferFloor, kPreferCeil, kFloor, kCeil, kSimple };

struct ResizedAxis {
  int64_t input = 0;
  int64_t output = 0;
  float scale = 1;

  bool unchanged() const { return input == output && scale == 1; }
};

// By the names of the attributes; an error names the node where the name means nothing.
Coordinates parse_coordinates(const std::string& name, int64_t opset, const Node& node);
Rounding parse_rounding(const std::string& name, const Node& node);

// One index into the input per place. Computed in float, step by step like other runtimes, because
// rounding decides which value is taken.
std::vector<int64_t> nearest_places(const ResizedAxis& axis, Coordinates coordinates,
                                    Rounding rounding);

// value = (1 − weight) · input[below] + weight · input[above]
struct LinearPlaces {
  std::vector<int64_t> below;
  std::vector<int64_t> above;
  std::vector<double> weight;
};
LinearPlaces linear_places(const ResizedAxis& axis, Coordinates coordinates);

// value = Σ_k weight[k] · input[place[k]] over four neighbours, by the cubic convolution of Keys,
// "Cubic convolution interpolation for digital image processing", 1981, with coefficient a. Beyond
// an edge stands the edge; or, with exclude_outside, nothing, and the other weights add up to 1.
struct CubicOptions {
  double a = -0.75;
  bool exclude_outside = false;
};
struct CubicPlaces {
  std::array<std::vector<int64_t>, 4> place;
  std::array<std::vector<double>, 4> weight;
};
CubicPlaces cubic_places(const ResizedAxis& axis, Coordinates coordinates,
                         const CubicOptions& options);

}  // namespace fcp
