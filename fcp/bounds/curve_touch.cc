#include "fcp/bounds/curve_touch.h"

#include <algorithm>
#include <vector>

#include "fcp/base/infinity.h"

namespace fcp {
namespace {

constexpr int kHalvings = 12, kFalsePositions = 3;

// The part of the piece that lies in the region of one curvature.
struct CurvedPart {
  bool below = true;
  size_t region = 0;
  torch::Tensor low, high;
};

std::optional<CurvedPart> only_part(const Curve& curve, const Piece& piece, bool below) {
  const std::vector<int>& curvature = curve.curvature;
  const int wanted_sign = below ? 1 : -1;
  if (curvature.size() < 2 || std::count(curvature.begin(), curvature.end(), 0) > 0) return {};
  if (std::count(curvature.begin(), curvature.end(), wanted_sign) != 1) return {};
  const auto region = static_cast<size_t>(
      std::find(curvature.begin(), curvature.end(), wanted_sign) - curvature.begin());
  const double from = region == 0 ? -kInfinity : curve.knots[region - 1];
  const double to = region == curve.knots.size() ? kInfinity : curve.knots[region];
  return CurvedPart{below, region, piece.l.clamp(from, to), piece.u.clamp(from, to)};
}

// Which tangents to look for: those of a part that go through f at the end l, or u.
struct TangentWanted {
  const CurvedPart* part;
  bool from_l;
};

std::vector<TangentWanted> wanted_tangents(const Curve& curve, const CurvedPart& part) {
  std::vector<TangentWanted> wanted;
  if (part.region > 0) wanted.push_back({&part, true});
  if (part.region + 1 < curve.curvature.size()) wanted.push_back({&part, false});
  return wanted;
}

// The points [K, …] where they touch: where
//
//   miss(t) = ±(f'(t)(t − end) − (f(t) − f(end))),
//
// which falls with t, is 0; or that end of the part which is nearest to it.
torch::Tensor touching_points(const Curve& curve, const Piece& piece,
                              const std::vector<TangentWanted>& wanted) {
  std::vector<torch::Tensor> lows, highs, ends, at_ends, signs;
  for (const auto& [part, from_l] : wanted) {
    lows.push_back(part->low);
    highs.push_back(part->high);
    ends.push_back(from_l ? piece.l : piece.u);
    at_ends.push_back(from_l ? piece.at_l : piece.at_u);
    signs.push_back(torch::full_like(piece.l, part->below == from_l ? -1.0 : 1.0));
  }
  torch::Tensor low = torch::stack(lows), high = torch::stack(highs);
  const torch::Tensor end = torch::stack(ends), at_end = torch::stack(at_ends),
                      sign = torch::stack(signs);
  const auto miss = [&](const torch::Tensor& t) {
    return (curve.slope(t) * (t - end) - (curve.value(t) - at_end)) * sign;
  };
  for (int step = 0; step < kHalvings; ++step) {
    const torch::Tensor middle = (low + high) / 2;
    const torch::Tensor right = miss(middle) > 0;
    low = torch::where(right, middle, low);
    high = torch::where(right, high, middle);
  }
  torch::Tensor at_low = miss(low), at_high = miss(high), point = low;
  for (int step = 0; step < kFalsePositions; ++step) {
    point = low + (high - low) * (at_low / (at_low - at_high));
    point = torch::where(point.isfinite(), point, (low + high) / 2);
    point = torch::minimum(torch::maximum(point, low), high);
    if (step + 1 == kFalsePositions) break;
    const torch::Tensor at_point = miss(point), right = at_point > 0;
    low = torch::where(right, point, low);
    at_low = torch::where(right, at_point, at_low);
    high = torch::where(right, high, point);
    at_high = torch::where(right, at_high, at_point);
  }
  return point;
}

// Slopes to try [K, …] and where their lines touch.
struct Touches {
  torch::Tensor slopes, points;
};

// `tangents` are the points of the tangents through the ends.
Touches touches_to_try(const Curve& curve, const Piece& piece, const CurvedPart& part,
                       const torch::Tensor& tangents, torch::ScalarType type) {
  const torch::Tensor middle = (piece.l + piece.u) / 2;
  const torch::Tensor at_middle = torch::minimum(torch::maximum(middle, part.low), part.high);
  const torch::Tensor touching = torch::cat({at_middle.unsqueeze(0), tangents});
  // The secant supports f where all of the part is on one side of the touching point.
  const torch::Tensor secant = (piece.at_u - piece.at_l) / (piece.u - piece.l);
  std::vector<torch::Tensor> points, secants;
  if (part.region + 1 < curve.curvature.size()) points.push_back(part.low);
  if (part.region > 0) points.push_back(part.high);
  secants.assign(points.size(), secant);
  torch::Tensor slopes = torch::cat({curve.slope(touching), torch::stack(secants)});
  slopes = slopes.to(type).to(torch::kDouble);  // the very slopes that the walk will use
  return {slopes.masked_fill(slopes.isfinite().logical_not(), 0),
          torch::cat({touching, torch::stack(points)})};
}

TouchingLine best_touching(const Curve& curve, const Piece& piece, const CurvedPart& part,
                           const Touches& touches) {
  const auto& [a, t] = touches;
  const bool below = part.below;
  const auto nearer = [&](const torch::Tensor& x, const torch::Tensor& y) {
    return below ? torch::minimum(x, y) : torch::maximum(x, y);
  };
  torch::Tensor bias = nearer(piece.at_l - a * piece.l, piece.at_u - a * piece.u);
  for (size_t i = 0; i < curve.knots.size(); ++i) {
    const torch::Tensor value = piece.at_point[i] - a * curve.knots[i];
    bias = torch::where(piece.inside[i], nearer(bias, value), bias);
  }
  const torch::Tensor off = curve.slope(t) - a;
  const torch::Tensor reach = nearer(off * (part.low - t), off * (part.high - t));
  const torch::Tensor touched = curve.value(t) - a * t + reach;
  bias = torch::where(part.high > part.low, nearer(bias, touched), bias);
  // The best in the middle; what is not known is not taken.
  torch::Tensor height = a * ((piece.l + piece.u) / 2) + bias;
  if (!below) height = -height;
  height = height.masked_fill(height.isnan(), -kInfinity);
  const torch::Tensor best = height.argmax(0, /*keepdim=*/true);
  return {a.gather(0, best).squeeze(0), bias.gather(0, best).squeeze(0)};
}

}  // namespace

TouchingLines touching_lines(const Curve& curve, const Piece& piece, torch::ScalarType type) {
  const std::optional<CurvedPart> below = only_part(curve, piece, true);
  const std::optional<CurvedPart> above = only_part(curve, piece, false);
  std::vector<TangentWanted> wanted;
  for (const auto* part : {&below, &above}) {
    if (!part->has_value()) continue;
    const std::vector<TangentWanted> more = wanted_tangents(curve, **part);
    wanted.insert(wanted.end(), more.begin(), more.end());
  }
  TouchingLines lines;
  if (wanted.empty()) return lines;
  const torch::Tensor points = touching_points(curve, piece, wanted);
  int64_t first = 0;
  for (const auto* part : {&below, &above}) {
    if (!part->has_value()) continue;
    const auto count = static_cast<int64_t>(wanted_tangents(curve, **part).size());
    const Touches touches =
        touches_to_try(curve, piece, **part, points.narrow(0, first, count), type);
    (part == &below ? lines.below : lines.above) = best_touching(curve, piece, **part, touches);
    first += count;
  }
  return lines;
}

}  // namespace fcp
