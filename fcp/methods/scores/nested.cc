#include "fcp/methods/scores/nested.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/infinity.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/methods/scores/pixels.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

constexpr int64_t kMostSearchedOutputs = 256;  // one search each where bands are not nested

struct Band {
  torch::Tensor lower;  // [N, K] doubles
  torch::Tensor upper;
};

class BandScore : public Score {
 public:
  BandScore(const NestedOptions& options, double pixel_share, std::shared_ptr<const Network> head,
            const BandOutputs& outputs)
      : head_(std::move(head)),
        bounds_(make_bounds(head_, options.bound)),
        outputs_(outputs),
        norm_(options.norm),
        share_(pixel_share),
        widening_(options.floor * options.slope / 2) {
    if (!options.scale.empty()) scale_ = torch::tensor(options.scale, torch::kDouble);
  }

  int64_t sides() const override { return outputs_.sides; }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    PixelShape pixels;
    const Band center = predict(features, &pixels);
    const torch::Tensor y = truth_matrix(truth, center.lower);  // [N, K]
    const torch::Tensor unknown =
        y.isnan().logical_or(center.lower.isnan()).logical_or(center.upper.isnan()).any(1);
    const HeadBounds::RangesAt ranges = bounds_->around({features, {}, norm_, scale_for(features)});
    const auto search_ends = [&](bool above_lower, bool below_upper) {
      return search(ranges, center, y, pixels, above_lower, below_upper);
    };
    Tensors scores;
    if (sides() == 2) {
      scores = {search_ends(true, false), search_ends(false, true)};
    } else if (outputs_.range == RadiusRange::kSigned && !bounds_->monotone()) {
      scores = {torch::maximum(search_ends(true, false), search_ends(false, true))};
    } else {
      scores = {search_ends(true, true)};
    }
    const torch::Tensor all = torch::stack(scores, 1);  // [N, S]
    const torch::Tensor nan = torch::full_like(all, std::numeric_limits<double>::quiet_NaN());
    return plain_scores(torch::where(unknown.unsqueeze(1), nan, all));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Band center = predict(features);
    check_radii(radius, features.size(0), sides());
    const torch::Tensor radii = radius.to(center.lower.device(), torch::kDouble);
    const HeadBounds::RangesAt ranges = bounds_->around({features, {}, norm_, scale_for(features)});
    const Band first = band_within(ranges, center, radii.narrow(1, 0, 1));
    const Band last = sides() == 1 ? first : band_within(ranges, center, radii.narrow(1, 1, 1));
    return {(center.lower + center.upper) / 2, first.lower, last.upper, {}};
  }

 private:
  // The scale in the shape of one row of features; undefined: 1.
  torch::Tensor scale_for(const torch::Tensor& features) const {
    if (!scale_.defined()) return {};
    const auto shape = features.sizes().slice(1);
    if (scale_.numel() * features.size(0) != features.numel()) {
      fail("the score has scales for ", scale_.numel(), " numbers, its features have ",
           features.numel() / std::max<int64_t>(1, features.size(0)));
    }
    return scale_.to(features.options()).reshape(shape);
  }

  Band predict(const torch::Tensor& features, PixelShape* pixels = nullptr) const {
    const Tensors outputs = run_apart(*head_, {features});
    if (pixels != nullptr) *pixels = pixel_shape(outputs[outputs_.low]);
    const auto [low, high] = quantiles_of(outputs, {outputs_.low, outputs_.high});
    return {torch::minimum(low, high), torch::maximum(low, high)};
  }

  // The band of each row at its own radius [N], on its side of the prediction whatever rounding did
  // to the range.
  Band band(const HeadBounds::RangesAt& ranges, const Band& center,
            const torch::Tensor& radius) const {
    const std::vector<Range> at = ranges(radius.abs());
    const Band low = ends(at[outputs_.low]);
    const Band high = outputs_.low == outputs_.high ? low : ends(at[outputs_.high]);
    const torch::Tensor margin = radius.to(torch::kDouble).unsqueeze(1) * widening_;  // [N, 1]
    const torch::Tensor below = torch::minimum(low.lower, high.lower) - margin;
    const torch::Tensor above = torch::maximum(low.upper, high.upper) + margin;
    const Band wide{torch::minimum(below, center.lower), torch::maximum(above, center.upper)};
    if (outputs_.range == RadiusRange::kFromZero) return wide;
    const torch::Tensor inner_lower = torch::minimum(low.upper, high.upper) - margin;
    const torch::Tensor inner_upper = torch::maximum(low.lower, high.lower) + margin;
    const torch::Tensor shrunken = (radius < 0).unsqueeze(1);
    return {torch::where(shrunken, torch::maximum(inner_lower, center.lower), wide.lower),
            torch::where(shrunken, torch::minimum(inner_upper, center.upper), wide.upper)};
  }

  // Radii near the end of float32 make ∞ − ∞ inside a range, which says nothing about the end.
  static Band ends(const Range& range) {
    return {torch::nan_to_num(output_matrix(range.lower), -kInfinity, kInfinity, -kInfinity),
            torch::nan_to_num(output_matrix(range.upper), kInfinity, kInfinity, -kInfinity)};
  }

  // The smallest radius of each row with the truth above the lower end, below the upper, or both,
  // at enough of its pixels.
  torch::Tensor search(const HeadBounds::RangesAt& ranges, const Band& center,
                       const torch::Tensor& y, const PixelShape& pixels, bool above_lower,
                       bool below_upper) const {
    const auto inside = [&](const torch::Tensor& radius) {
      const Band at = band(ranges, center, radius);
      if (!below_upper) return at.lower <= y;
      if (!above_lower) return y <= at.upper;
      return (at.lower <= y).logical_and(y <= at.upper);
    };
    const auto smallest = [&](const HoldsAt& holds) {
      return smallest_radius(y.size(0), y.device(), outputs_.range, holds);
    };
    if (bounds_->monotone()) {
      return smallest([&](const torch::Tensor& radius) {
        return enough_pixels(inside(radius), pixels, share_);
      });
    }
    if (y.size(1) > kMostSearchedOutputs) {
      fail("this bound searches each of the ", y.size(1),
           " outputs by itself; use the bound ibp for more than ", kMostSearchedOutputs);
    }
    Tensors each;
    for (int64_t k = 0; k < y.size(1); ++k) {
      each.push_back(
          smallest([&](const torch::Tensor& radius) { return inside(radius).select(1, k); }));
    }
    return pixel_quantile(torch::stack(each, 1), pixels, share_);
  }

  // All y whose search ends at most at the radius, [N, 1].
  Band band_within(const HeadBounds::RangesAt& ranges, const Band& center,
                   const torch::Tensor& radius) const {
    const torch::Tensor infinity = torch::full_like(center.lower, kInfinity);
    Band result{infinity, -infinity};  // empty
    const torch::Tensor asked = radius.squeeze(1);
    if (bounds_->monotone()) {
      const RadiusBelow below = radius_below(asked, outputs_.range);
      const Band at = band(ranges, center, below.radius);
      const torch::Tensor exists = below.exists.unsqueeze(1);
      result = {torch::where(exists, at.lower, result.lower),
                torch::where(exists, at.upper, result.upper)};
    } else {
      for (const PathStep& step : path_back(asked, outputs_.range)) {
        const Band at = band(ranges, center, step.radius);
        const torch::Tensor within = step.within.unsqueeze(1);
        const torch::Tensor active = step.active.unsqueeze(1);
        const Band joined{torch::where(within, torch::minimum(at.lower, result.lower),
                                       torch::maximum(at.lower, result.lower)),
                          torch::where(within, torch::maximum(at.upper, result.upper),
                                       torch::minimum(at.upper, result.upper))};
        result = {torch::where(active, joined.lower, result.lower),
                  torch::where(active, joined.upper, result.upper)};
      }
    }
    const torch::Tensor infinite = radius == kInfinity;
    return {torch::where(infinite, -infinity, result.lower),
            torch::where(infinite, infinity, result.upper)};
  }

  std::shared_ptr<const Network> head_;
  std::unique_ptr<HeadBounds> bounds_;
  BandOutputs outputs_;
  Norm norm_;
  double share_;         // of the pixels that must be in
  torch::Tensor scale_;  // [D]; undefined: 1
  double widening_;      // of each side, at radius 1
};

}  // namespace

std::unique_ptr<Score> make_band_score(const NestedOptions& options, double pixel_share,
                                       std::shared_ptr<const Network> head,
                                       const BandOutputs& outputs) {
  return std::make_unique<BandScore>(options, pixel_share, std::move(head), outputs);
}

std::unique_ptr<Score> make_score(const NestedOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  const size_t output = output_index(*head, shared.output);
  const double share = pixel_share(shared.pixels, NestedOptions::kName);
  if (shared.side != BoundSide::kBoth) {
    const BandOutputs ends{
        .low = output, .high = output, .range = RadiusRange::kSigned, .sides = 2};
    return one_end_of(make_band_score(options, share, std::move(head), ends), shared.side);
  }
  std::unique_ptr<Score> general =
      make_band_score(options, share, head, {.low = output, .high = output});
  return with_relu_nested(options, *head, output, std::move(general));
}

}  // namespace fcp
