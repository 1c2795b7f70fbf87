// Lines that touch a curve from one side over pieces with a knot inside, where the curve bends to
// that side in one region alone, as tanh, sigmoid and erf do on either side and GELU from below.
//
// The line that is highest in the middle m of [l, u], of all below f, supports f's convex envelope
// there. With one convex region it is one of these: the tangent at m; a tangent in the region that
// goes through f at l or at u; the secant. All are tried, each with the intercept that holds: the
// least of f − a·x at the ends and the knots inside, and over the region, where f is convex, of the
// tangent of f − a·x at the point t where the line touches,
//
//   f(t) − a·t + min over x in the region of (f'(t) − a)(x − t).
//
// So no search for the place where f' = a is needed. From above likewise. The tangents through an
// end are found by bisection and, once the bracket is small, false position.
// Cost: about twenty evaluations of f and f' for each number. Tested by tests/bounds/curve_test.cc.
#pragma once

#include <optional>

#include <torch/types.h>

#include "fcp/bounds/curve_piece.h"

namespace fcp {

struct TouchingLine {
  torch::Tensor slope, bias;
};

struct TouchingLines {
  std::optional<TouchingLine> below,
      above;  // absent where the curve has no such region, or several
};

// None where the curve has straight parts.
TouchingLines touching_lines(const Curve& curve, const Piece& piece, torch::ScalarType type);

}  // namespace fcp
