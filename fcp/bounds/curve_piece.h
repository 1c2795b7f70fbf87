// A curve over a range: what relax.cc needs of it to draw lines below and above.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/bounds/relax.h"

namespace fcp {

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

}  // namespace fcp
