#include "fcp/bounds/curve_piece.h"

#include "fcp/base/infinity.h"

namespace fcp {
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
