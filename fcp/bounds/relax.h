// Lines and intervals that enclose a function of one number (fcp/nn/ops/curve.h).
//
// Two straight lines enclose such a function f on [l, u]. For a slope a the tightest intercepts are
// the extrema of f(x) − a·x, which lie at the ends, at a knot, or where f'(x) = a; between knots f'
// is monotone, so that a bisection finds the place and proves what it may have missed. Of a few
// slopes (secant, tangents) the one is kept whose line is closest to f in the middle of [l, u],
// which makes the area between line and function smallest. For ReLU that is CROWN's choice: secant
// above, slope 0 or 1 below, whichever leaves less area.
//
// Intervals take f at the ends, and at turns inside, in double precision, rounded at last: a larger
// range has no smaller interval as long as libtorch's f in double precision is monotone to within
// what that rounding hides.
//
// Reference: Zhang et al., "Efficient Neural Network Robustness Certification with General
// Activation Functions", 2018. Cost: about a hundred evaluations a number for a smooth function,
// ten for a piecewise linear one. Tested by tests/bounds/curve_test.cc.
#pragma once

#include <torch/types.h>

#include "fcp/nn/ops/curve.h"

namespace fcp {

// Lines on one side of a curve, slopes and intercepts [K, …]: any mean of two is on that side too.
struct Fan {
  torch::Tensor slopes, biases;
};

// lower_slope · x + lower_bias ≤ f(x) ≤ upper_slope · x + upper_bias for all x of the range. Where
// least_slope < most_slope, the lower line may take any slope between them, with the same bias.
struct Relaxation {
  torch::Tensor lower_slope, lower_bias;
  torch::Tensor upper_slope, upper_bias;
  torch::Tensor least_slope, most_slope;  // defined for a hinge
  Fan below, above;                       // where asked for, and the curve is not a hinge
};

// `unit` is the roundoff of the network's arithmetic, whose errors are to be inside as well; 0
// leaves them out. Both answer in the type of the range.
Range curve_interval(const Curve& curve, const Range& range, double unit);
Relaxation relax(const Curve& curve, const Range& range, double unit, bool fans = false);

}  // namespace fcp
