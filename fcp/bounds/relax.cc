#include "fcp/bounds/relax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fcp/base/special_numbers.h"
#include "fcp/bounds/curve_touch.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

constexpr double kDoubleSlack = 1.0 / (int64_t{1} << 48);  // of double arithmetic, generously

// The extrema of f on the piece; NaN, outside f's domain, says nothing.
Range extrema(const Curve& curve, const Piece& piece) {
  torch::Tensor lower = torch::minimum(piece.at_l, piece.at_u);
  torch::Tensor upper = torch::maximum(piece.at_l, piece.at_u);
  for (size_t i = 0; i < piece.points.size(); ++i) {
    const torch::Tensor value = piece.at_point[i];
    lower = torch::where(piece.inside[i], torch::minimum(lower, value), lower);
    upper = torch::where(piece.inside[i], torch::maximum(upper, value), upper);
  }
  torch::Tensor unknown_lower = lower.isnan(), unknown_upper = upper.isnan();
  if (curve.pole) {
    const torch::Tensor hit = (piece.l <= *curve.pole).logical_and(piece.u >= *curve.pole);
    unknown_lower = unknown_lower.logical_or(hit);
    unknown_upper = unknown_upper.logical_or(hit);
  }
  return {lower.masked_fill(unknown_lower, -kInfinity),
          upper.masked_fill(unknown_upper, kInfinity)};
}

torch::Tensor largest_magnitude(const torch::Tensor& a, const torch::Tensor& b) {
  return torch::maximum(a.abs(), b.abs());
}

torch::Tensor evaluation_error(const Curve& curve, const Piece& piece, const Range& values,
                               double unit) {
  torch::Tensor size = largest_magnitude(values.lower, values.upper) + curve.error_1;
  if (curve.error_x > 0) size = size + largest_magnitude(piece.l, piece.u) * curve.error_x;
  return size * (curve.roundings * unit + kDoubleSlack) + std::numeric_limits<float>::min();
}

std::vector<torch::Tensor> slopes_to_try(const Curve& curve, const Piece& piece, bool crossing) {
  const torch::Tensor width = piece.u - piece.l;
  const torch::Tensor tangent = curve.slope((piece.l + piece.u) / 2);
  const torch::Tensor secant = torch::where(width > 0, (piece.at_u - piece.at_l) / width, tangent);
  std::vector<torch::Tensor> slopes = {tangent, secant};
  if (!crossing) return slopes;
  const size_t last = curve.curvature.size() - 1;
  for (size_t region = 0; region <= last; ++region) {
    if (curve.curvature[region] == 0) continue;
    if (region > 0) slopes.push_back(tangent_through(curve, piece, region, /*from_l=*/true));
    if (region < last) slopes.push_back(tangent_through(curve, piece, region, /*from_l=*/false));
  }
  if (std::find(curve.curvature.begin(), curve.curvature.end(), 0) == curve.curvature.end())
    return slopes;
  // Slopes may jump: lines along the straight parts, and from the ends to the knots.
  slopes.insert(slopes.begin(), {curve.slope(piece.l), curve.slope(piece.u)});
  for (size_t i = 0; i < curve.knots.size() && !curve.hinge; ++i) {
    slopes.push_back((piece.at_point[i] - piece.at_l) / (curve.knots[i] - piece.l));
    slopes.push_back((piece.at_point[i] - piece.at_u) / (curve.knots[i] - piece.u));
  }
  return slopes;
}

// Where nothing finite is known of a line, the constants that bound f take its place.
void replace_unknown(torch::Tensor& slope, torch::Tensor& bias, const torch::Tensor& constant) {
  const torch::Tensor known = bias.isfinite().logical_and(constant.isfinite());
  const torch::Tensor unknown = known.logical_not();
  slope = slope.masked_fill(unknown, 0);
  bias = torch::where(unknown, constant, bias);
}

// The lines that are closest in the middle, of the slopes that are tried. A piece without a knot
// inside is convex or concave: the tangent of its middle and its secant are best, and need no
// bisection.
Relaxation best_lines(const Curve& curve, const Piece& piece, torch::ScalarType type,
                      bool crossing) {
  const torch::Tensor middle = (piece.l + piece.u) / 2;
  torch::Tensor slopes = torch::stack(slopes_to_try(curve, piece, crossing));
  slopes = slopes.to(type).to(torch::kDouble);  // the very slopes that the walk will use
  slopes = slopes.masked_fill(slopes.isfinite().logical_not(), 0);
  const Range biases = intercepts(curve, piece, slopes, crossing ? kBisections : 0);
  const auto best = [&](const torch::Tensor& bias, bool below) {
    torch::Tensor height = slopes * middle + bias;
    if (!below) height = -height;
    return height.masked_fill(height.isnan(), -kInfinity).argmax(0, /*keepdim=*/true);
  };
  const auto taken = [](const torch::Tensor& each, const torch::Tensor& index) {
    return each.gather(0, index).squeeze(0);
  };
  const torch::Tensor lower = best(biases.lower, true), upper = best(biases.upper, false);
  Relaxation lines;
  lines.lower_slope = taken(slopes, lower);
  lines.lower_bias = taken(biases.lower, lower);
  lines.upper_slope = taken(slopes, upper);
  lines.upper_bias = taken(biases.upper, upper);
  return lines;
}

// Of pieces with a knot inside: lines that touch, where they are known, else of slopes tried.
Relaxation crossing_lines(const Curve& curve, const Piece& piece, torch::ScalarType type) {
  const auto [below, above] = touching_lines(curve, piece, type);
  Relaxation lines;
  if (!below || !above) lines = best_lines(curve, piece, type, /*crossing=*/true);
  if (below) {
    lines.lower_slope = below->slope;
    lines.lower_bias = below->bias;
  }
  if (above) {
    lines.upper_slope = above->slope;
    lines.upper_bias = above->bias;
  }
  return lines;
}

// The secant on one side; on the other the line through 0 along that straight part which is closer
// in the middle, or along any slope between the two where the hinge is convex.
Relaxation hinge_lines(const Curve& curve, const Piece& piece, torch::ScalarType type) {
  const torch::Tensor left = curve.slope(piece.l), right = curve.slope(piece.u);
  const torch::Tensor& crossing = piece.inside[0];
  const torch::Tensor near = torch::where(piece.l + piece.u > 0, right, left);
  torch::Tensor secant = (piece.at_u - piece.at_l) / (piece.u - piece.l);
  secant = torch::where(crossing, secant, near).to(type).to(torch::kDouble);
  const torch::Tensor at_l = piece.at_l - secant * piece.l, at_u = piece.at_u - secant * piece.u;
  const torch::Tensor zero = torch::zeros_like(at_l);
  const torch::Tensor convex = left <= right;
  Relaxation lines;
  lines.lower_slope = torch::where(convex, near, secant);
  lines.lower_bias = torch::where(convex, zero, torch::minimum(at_l, at_u));
  lines.upper_slope = torch::where(convex, secant, near);
  lines.upper_bias = torch::where(convex, torch::maximum(at_l, at_u), zero);
  const torch::Tensor free = crossing.logical_and(left < right);
  lines.least_slope = torch::where(free, left, lines.lower_slope);
  lines.most_slope = torch::where(free, right, lines.lower_slope);
  return lines;
}

// Pieces with knots inside are few where the ranges are small, and cost much: they go by
// themselves, unless picking them out would cost more (device_waits.h).
Relaxation smooth_lines(const Curve& curve, const Piece& piece, torch::ScalarType type) {
  Relaxation lines = best_lines(curve, piece, type, /*crossing=*/false);
  if (curve.knots.empty()) return lines;
  torch::Tensor crossing = piece.inside[0];
  for (size_t i = 1; i < curve.knots.size(); ++i) crossing = crossing.logical_or(piece.inside[i]);
  if (!may_read_back(crossing)) {
    const Relaxation better = crossing_lines(curve, piece, type);
    lines.lower_slope = torch::where(crossing, better.lower_slope, lines.lower_slope);
    lines.lower_bias = torch::where(crossing, better.lower_bias, lines.lower_bias);
    lines.upper_slope = torch::where(crossing, better.upper_slope, lines.upper_slope);
    lines.upper_bias = torch::where(crossing, better.upper_bias, lines.upper_bias);
    return lines;
  }
  const Range few = {piece.l.masked_select(crossing), piece.u.masked_select(crossing)};
  if (few.lower.numel() == 0) return lines;
  const Relaxation better = crossing_lines(curve, make_piece(curve, few), type);
  lines.lower_slope = lines.lower_slope.masked_scatter(crossing, better.lower_slope);
  lines.lower_bias = lines.lower_bias.masked_scatter(crossing, better.lower_bias);
  lines.upper_slope = lines.upper_slope.masked_scatter(crossing, better.upper_slope);
  lines.upper_bias = lines.upper_bias.masked_scatter(crossing, better.upper_bias);
  return lines;
}

}  // namespace

Range curve_interval(const Curve& curve, const Range& range, double unit) {
  if (curve.rising && curve.straight() && (unit == 0 || curve.roundings == 0)) {
    return {curve.value(range.lower), curve.value(range.upper)};
  }
  const Piece piece = make_piece(curve, range, /*ends_only=*/true);
  Range values = extrema(curve, piece);
  if (unit > 0 && curve.roundings > 0) {
    const torch::Tensor error = evaluation_error(curve, piece, values, unit);
    values = {values.lower - error, values.upper + error};
  }
  const torch::ScalarType type = range.lower.scalar_type();
  return {values.lower.to(type), values.upper.to(type)};
}

Relaxation relax(const Curve& curve, const Range& range, double unit, bool fans) {
  const torch::ScalarType type = range.lower.scalar_type();
  const Piece piece = make_piece(curve, range);
  const Range values = extrema(curve, piece);
  Relaxation lines = curve.hinge        ? hinge_lines(curve, piece, type)
                     : curve.straight() ? best_lines(curve, piece, type, /*crossing=*/true)
                                        : smooth_lines(curve, piece, type);
  if (fans && !curve.hinge) {
    std::vector<Fan> made = make_fans(curve, piece, type);
    lines.below = made[0];
    lines.above = made[1];
    replace_unknown(lines.below.slopes, lines.below.biases, values.lower);
    replace_unknown(lines.above.slopes, lines.above.biases, values.upper);
  }
  replace_unknown(lines.lower_slope, lines.lower_bias, values.lower);
  replace_unknown(lines.upper_slope, lines.upper_bias, values.upper);
  if (unit > 0) {
    torch::Tensor error = evaluation_error(curve, piece, values, unit * (curve.roundings > 0));
    torch::Tensor steepest = torch::maximum(lines.lower_slope.abs(), lines.upper_slope.abs());
    if (lines.below.slopes.defined()) {
      const torch::Tensor below = lines.below.slopes.abs().amax(0);
      steepest = torch::maximum(steepest, torch::maximum(below, lines.above.slopes.abs().amax(0)));
    }
    error = error + largest_magnitude(piece.l, piece.u) * steepest * kDoubleSlack;
    lines.lower_bias = lines.lower_bias - error;
    lines.upper_bias = lines.upper_bias + error;
    if (lines.below.slopes.defined()) {
      lines.below.biases = lines.below.biases - error;
      lines.above.biases = lines.above.biases + error;
    }
  }
  for (torch::Tensor* part :
       {&lines.lower_slope, &lines.lower_bias, &lines.upper_slope, &lines.upper_bias,
        &lines.least_slope, &lines.most_slope, &lines.below.slopes, &lines.below.biases,
        &lines.above.slopes, &lines.above.biases}) {
    if (part->defined()) *part = part->to(type);
  }
  return lines;
}

}  // namespace fcp
