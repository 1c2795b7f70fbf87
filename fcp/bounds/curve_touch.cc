#include "fcp/bounds/curve_touch.h"

#include <algorithm>
#include <vector>

#include "fcp/base/special_numbers.h"

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

namespace {

constexpr int kTangentBisections = 20;  // a slope need not be exact to be sound
constexpr int kFanLines = 9;            // between them the intercept is within 1/64 of its bend
constexpr int kChords = 16;

}  // namespace

Piece make_piece(const Curve& curve, const Range& range, bool ends_only) {
  Piece piece;
  piece.l = range.lower.to(torch::kDouble);
  piece.u = range.upper.to(torch::kDouble);
  piece.at_l = curve.value(piece.l);
  piece.at_u = curve.value(piece.u);
  if (curve.rising && ends_only) return piece;
  piece.points = curve.knots;
  piece.points.insert(piece.points.end(), curve.turns.begin(), curve.turns.end());
  for (const double point : piece.points) {
    piece.inside.push_back((piece.l < point).logical_and(piece.u > point));
    piece.at_point.push_back(curve.value(torch::full_like(piece.l, point)));
  }
  return piece;
}

Range intercepts(const Curve& curve, const Piece& piece, const torch::Tensor& a, int bisections) {
  const torch::Tensor at_l = piece.at_l - a * piece.l, at_u = piece.at_u - a * piece.u;
  torch::Tensor lower = torch::minimum(at_l, at_u), upper = torch::maximum(at_l, at_u);
  for (size_t i = 0; i < curve.knots.size(); ++i) {
    const torch::Tensor value = piece.at_point[i] - a * curve.knots[i];
    lower = torch::where(piece.inside[i], torch::minimum(lower, value), lower);
    upper = torch::where(piece.inside[i], torch::maximum(upper, value), upper);
  }
  for (size_t i = 0; i < curve.curvature.size(); ++i) {
    if (curve.curvature[i] == 0) continue;
    const double from = i == 0 ? -kInfinity : curve.knots[i - 1];
    const double to = i == curve.knots.size() ? kInfinity : curve.knots[i];
    torch::Tensor low = piece.l.clamp(from, to), high = piece.u.clamp(from, to);
    const torch::Tensor present = high > low;
    for (int step = 0; step < bisections; ++step) {
      const torch::Tensor middle = (low + high) / 2;
      const torch::Tensor slope = curve.slope(middle);
      const torch::Tensor right = curve.curvature[i] > 0 ? slope < a : slope > a;
      low = torch::where(right, middle, low);
      high = torch::where(right, high, middle);
    }
    // f − a·x is convex (concave) here, hence nowhere beyond its tangent at `middle`.
    const torch::Tensor middle = (low + high) / 2;
    const torch::Tensor value = curve.value(middle) - a * middle;
    const torch::Tensor missed = (curve.slope(middle) - a).abs() * (high - low);
    if (curve.curvature[i] > 0) {
      lower = torch::where(present, torch::minimum(lower, value - missed), lower);
    } else {
      upper = torch::where(present, torch::maximum(upper, value + missed), upper);
    }
  }
  return {lower, upper};
}

torch::Tensor tangent_through(const Curve& curve, const Piece& piece, size_t region, bool from_l) {
  const torch::Tensor& end = from_l ? piece.l : piece.u;
  const torch::Tensor& at_end = from_l ? piece.at_l : piece.at_u;
  const double from = region == 0 ? -kInfinity : curve.knots[region - 1];
  const double to = region == curve.knots.size() ? kInfinity : curve.knots[region];
  torch::Tensor low = piece.l.clamp(from, to), high = piece.u.clamp(from, to);
  const double sign = (curve.curvature[region] > 0) == from_l ? -1 : 1;
  for (int step = 0; step < kTangentBisections; ++step) {
    const torch::Tensor middle = (low + high) / 2;
    const torch::Tensor miss =
        curve.slope(middle) * (middle - end) - (curve.value(middle) - at_end);
    const torch::Tensor right = miss * sign > 0;
    low = torch::where(right, middle, low);
    high = torch::where(right, high, middle);
  }
  return curve.slope((low + high) / 2);
}

// The envelope's slope at l is the least of the chords from l, and at u the largest of those to u;
// of the chords a few are tried. A slope that is missed costs tightness only.
std::vector<Fan> make_fans(const Curve& curve, const Piece& piece, torch::ScalarType type) {
  torch::Tensor least_from = curve.slope(piece.l), most_from = least_from;
  torch::Tensor least_to = curve.slope(piece.u), most_to = least_to;
  const torch::Tensor width = piece.u - piece.l;
  for (int k = 1; k <= kChords; ++k) {
    const double share = static_cast<double>(k) / kChords;
    const torch::Tensor from =
        (curve.value(piece.l + width * share) - piece.at_l) / (width * share);
    const torch::Tensor to = (piece.at_u - curve.value(piece.u - width * share)) / (width * share);
    least_from = torch::fmin(least_from, from);
    most_from = torch::fmax(most_from, from);
    least_to = torch::fmin(least_to, to);
    most_to = torch::fmax(most_to, to);
  }
  std::vector<Fan> fans;
  for (const bool below : {true, false}) {
    const torch::Tensor first = below ? least_from : most_from;
    const torch::Tensor last = below ? most_to : least_to;
    std::vector<torch::Tensor> between;
    for (int k = 0; k < kFanLines; ++k) {
      const double share = static_cast<double>(k) / (kFanLines - 1);
      between.push_back(first + (last - first) * share);
    }
    torch::Tensor slopes = torch::stack(between).to(type).to(torch::kDouble);
    slopes = slopes.masked_fill(slopes.isfinite().logical_not(), 0);
    const Range ends = intercepts(curve, piece, slopes, kBisections);
    fans.push_back({slopes, below ? ends.lower : ends.upper});
  }
  return fans;
}

}  // namespace fcp
