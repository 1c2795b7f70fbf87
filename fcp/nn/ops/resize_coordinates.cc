#include "fcp/nn/ops/resize_coordinates.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
namespace {

template <typename Real>
Real source_place(Coordinates mode, const ResizedAxis& axis, int64_t place) {
  const Real x = static_cast<Real>(place);
  const Real scale = static_cast<Real>(axis.scale);
  const Real input = static_cast<Real>(axis.input);
  const Real output = static_cast<Real>(axis.output);
  const Real half = Real(0.5);
  switch (mode) {
    case Coordinates::kHalfPixel:
      return (x + half) / scale - half;
    case Coordinates::kPytorchHalfPixel:
      return axis.output > 1 ? (x + half) / scale - half : 0;
    case Coordinates::kHalfPixelSymmetric:
      return input / 2 * (1 - output / (scale * input)) + (x + half) / scale - half;
    case Coordinates::kAlignCorners:
      return axis.output > 1 ? x * (input - 1) / (output - 1) : 0;
    case Coordinates::kAsymmetric:
      return x / scale;
    case Coordinates::kTfHalfPixel:
      return (x + half) / scale;
  }
  return 0;
}

float rounded(Rounding mode, float x, bool shrinks) {
  switch (mode) {
    case Rounding::kPreferFloor:
      return std::ceil(x - 0.5f);
    case Rounding::kPreferCeil:
      return std::floor(x + 0.5f);
    case Rounding::kFloor:
      return std::floor(x);
    case Rounding::kCeil:
      return std::ceil(x);
    case Rounding::kSimple:
      return shrinks ? std::ceil(x) : std::floor(x);
  }
  return x;
}

}  // namespace

Coordinates parse_coordinates(const std::string& name, int64_t opset, const Node& node) {
  if (name == "half_pixel") return Coordinates::kHalfPixel;
  if (name == "pytorch_half_pixel") return Coordinates::kPytorchHalfPixel;
  if (name == "half_pixel_symmetric" && opset >= 19) return Coordinates::kHalfPixelSymmetric;
  if (name == "align_corners") return Coordinates::kAlignCorners;
  if (name == "asymmetric") return Coordinates::kAsymmetric;
  if (name == "tf_half_pixel_for_nn" && opset < 13) return Coordinates::kTfHalfPixel;
  fail(describe(node), ": coordinate_transformation_mode '", name, "' is not supported at opset ",
       opset, ", expected half_pixel, pytorch_half_pixel, align_corners or asymmetric");
}

Rounding parse_rounding(const std::string& name, const Node& node) {
  if (name == "round_prefer_floor") return Rounding::kPreferFloor;
  if (name == "round_prefer_ceil") return Rounding::kPreferCeil;
  if (name == "floor") return Rounding::kFloor;
  if (name == "ceil") return Rounding::kCeil;
  fail(describe(node), ": nearest_mode is '", name,
       "', expected round_prefer_floor, round_prefer_ceil, floor or ceil");
}

std::vector<int64_t> nearest_places(const ResizedAxis& axis, Coordinates coordinates,
                                    Rounding rounding) {
  std::vector<int64_t> places(static_cast<size_t>(axis.output));
  const float last = static_cast<float>(axis.input - 1);
  for (int64_t i = 0; i < axis.output; ++i) {
    const float place = source_place<float>(coordinates, axis, i);
    const float nearest = rounded(rounding, place, axis.scale < 1);
    places[static_cast<size_t>(i)] = static_cast<int64_t>(std::clamp(nearest, 0.0f, last));
  }
  return places;
}

LinearPlaces linear_places(const ResizedAxis& axis, Coordinates coordinates) {
  LinearPlaces places;
  const double last = static_cast<double>(axis.input - 1);
  for (int64_t i = 0; i < axis.output; ++i) {
    const double place = std::clamp(source_place<double>(coordinates, axis, i), 0.0, last);
    const auto below = static_cast<int64_t>(place);
    places.below.push_back(below);
    places.above.push_back(std::min(below + 1, axis.input - 1));
    places.weight.push_back(place - static_cast<double>(below));
  }
  return places;
}

CubicPlaces cubic_places(const ResizedAxis& axis, Coordinates coordinates,
                         const CubicOptions& options) {
  const double a = options.a;
  const auto kernel = [a](double distance) {
    const double x = std::abs(distance);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((x - 5) * x + 8) * a * x - 4 * a;
  };
  CubicPlaces places;
  for (int64_t i = 0; i < axis.output; ++i) {
    const double at = source_place<double>(coordinates, axis, i);
    const double below = std::floor(at);
    std::array<double, 4> weights{};
    double sum = 0;
    for (size_t k = 0; k < 4; ++k) {
      const double place = below - 1 + static_cast<double>(k);
      const bool outside = place < 0 || place > static_cast<double>(axis.input - 1);
      weights[k] = options.exclude_outside && outside ? 0 : kernel(at - place);
      sum += weights[k];
      const auto index =
          static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(axis.input - 1)));
      places.place[k].push_back(index);
    }
    for (size_t k = 0; k < 4; ++k) {
      places.weight[k].push_back(options.exclude_outside ? weights[k] / sum : weights[k]);
    }
  }
  return places;
}

}  // namespace fcp
