// A function of one number, as bounds see it: an activation with its derivative and curvature.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include <torch/types.h>

namespace fcp {

// All tensors x with lower ≤ x ≤ upper. A constant has one tensor for both.
struct Range {
  torch::Tensor lower;
  torch::Tensor upper;
};

struct Curve {
  using Function = std::function<torch::Tensor(const torch::Tensor&)>;

  Function value;             // of numbers in double precision
  Function slope;             // at a knot either side's
  std::vector<double> knots;  // ascending: where the slope jumps or the bend changes
  std::vector<int>
      curvature;  // before, between and after the knots: 1 convex, -1 concave, 0 straight
  std::vector<double> turns;   // where rising and falling change beside the knots
  std::optional<double> pole;  // a range that holds it has no bounds
  bool rising = false;         // never falls
  bool hinge = false;          // two straight lines that meet in 0

  // What an evaluation in the network's own precision may be off by, in units of its roundoff:
  //   roundings · (|f| + error_x · |x| + error_1)
  double roundings = 8;
  double error_x = 0;
  double error_1 = 0;

  bool straight() const {
    return std::all_of(curvature.begin(), curvature.end(), [](int sign) { return sign == 0; });
  }
};

}  // namespace fcp
