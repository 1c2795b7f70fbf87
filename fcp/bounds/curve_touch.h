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
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/relax.h"

namespace fcp {

// A curve over a range: what relax.cc needs of it to draw lines below and above.

constexpr int kBisections = 26;  // what is missed falls with the square of the bracket

// [l, u] in double precision, with f at the ends and at the knots and turns inside; these do not
// matter to the extrema of a function that never falls.
struct Piece {
  torch::Tensor l, u, at_l, at_u;
  std::vector<double> points;
  std::vector<torch::Tensor> inside;  // whether l < point < u
  std::vector<torch::Tensor> at_point;
};

// `ends_only`: without the knots and turns where f never falls.
Piece make_piece(const Curve& curve, const Range& range, bool ends_only = false);

// The extrema of f(x) − a·x on the piece: intercepts of the lines of slopes a [K, …] below and
// above f.
Range intercepts(const Curve& curve, const Piece& piece, const torch::Tensor& a, int bisections);

// The slope of the tangent, at a point of the region between two knots, that goes through f at the
// end l (or u). How far it misses rises or falls with the point, since the region is convex or
// concave.
torch::Tensor tangent_through(const Curve& curve, const Piece& piece, size_t region, bool from_l);

// Lines that support f from below, from the slope of its convex envelope at l to that at u; and
// from above, likewise. Any mean of two lines that are below is below.
std::vector<Fan> make_fans(const Curve& curve, const Piece& piece, torch::ScalarType type);

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
