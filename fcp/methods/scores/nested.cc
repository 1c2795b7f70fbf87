#include "fcp/methods/scores/nested.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/base/special_numbers.h"
#include "fcp/bounds/relu_range.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/kernels/relu_mlp/relu_range_cuda.h"
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

namespace {

class ReluNestedCuda : public Score {
 public:
  ReluNestedCuda(const ReluHead& head, ReluRangeCuda range, std::unique_ptr<Score> general)
      : head_(head), range_(std::move(range)), general_(std::move(general)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if (!takes_rows(head_, features, truth)) return general_->score(features, truth);
    const torch::Tensor y = truth.to(head_.w1.device(), torch::kDouble);
    return plain_scores(range_.radii_reaching(rows_of(features), y));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if (!takes(features)) return general_->region(features, radius);
    check_radii(radius, features.size(0), 1);
    const torch::Tensor radii = radius.to(head_.w1.device(), torch::kDouble);
    const torch::Tensor ends = range_.ranges_at(rows_of(features), radii);
    return {ends[0], ends[1], ends[2], {}};
  }

 private:
  bool takes(const torch::Tensor& features) const {
    return takes_features(head_, features) && features.size(0) > 0;
  }

  torch::Tensor rows_of(const torch::Tensor& features) const {
    return features.detach().to(head_.w1.device(), torch::kFloat).flatten(1);
  }

  ReluHead head_;
  ReluRangeCuda range_;
  std::unique_ptr<Score> general_;
};

}  // namespace

std::unique_ptr<Score> with_relu_nested_cuda(const NestedOptions& options, const ReluHead& head,
                                             std::unique_ptr<Score> general) {
  if constexpr (kCudaKernels) {
    if (!takes_relu_range_cuda(head)) return general;
    const ReluRows rows = make_relu_rows(head);
    const std::vector<float> scale(options.scale.begin(), options.scale.end());
    if (!scale.empty() && scale.size() != rows.features) return general;  // which says so
    const std::vector<float> moves =
        unit_moves(rows, options.norm, scale.empty() ? nullptr : scale.data());
    const double widening = options.floor * options.slope / 2;
    return std::make_unique<ReluNestedCuda>(head, ReluRangeCuda(head, moves, widening),
                                            std::move(general));
  }
  return general;
}

namespace {

constexpr double kBoundless = std::numeric_limits<double>::infinity();
constexpr size_t kNestedBlock = 48;     // rows whose hidden units stay in the first cache
constexpr size_t kNestedThread = 1024;  // below, a thread costs more than it does

// The largest finite float32 that is at most the radius, which is not negative.
float radius_at_most(double radius) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(radius < static_cast<double>(kMost))) return kMost;
  const auto nearest = static_cast<float>(radius);
  return static_cast<double>(nearest) > radius ? std::nextafter(nearest, 0.0f) : nearest;
}

class ReluNested : public Score {
 public:
  ReluNested(const NestedOptions& options, const ReluHead& head, std::unique_ptr<Score> general)
      : head_(head),
        rows_(make_relu_rows(head)),
        widening_(options.floor * options.slope / 2),
        general_(std::move(general)) {
    const std::vector<float> scale(options.scale.begin(), options.scale.end());
    if (!scale.empty() && scale.size() != rows_.features) return;  // general_ says so
    moves_ = unit_moves(rows_, options.norm, scale.empty() ? nullptr : scale.data());
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if (moves_.empty() || !takes_rows(head_, features, truth)) {
      return general_->score(features, truth);
    }
    const torch::Tensor y = truth.to(torch::kCPU, torch::kDouble).contiguous();
    const double* wanted = y.data_ptr<double>();
    std::vector<double> scores(static_cast<size_t>(features.size(0)));
    for_blocks(features, [&](size_t first, const RangeRows& rows) {
      radii_reaching(rows, wanted + first * rows_.outputs, scores.data() + first);
    });
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if (!takes(features)) return general_->region(features, radius);
    check_radii(radius, features.size(0), 1);
    const torch::Tensor radii = radius.to(torch::kCPU, torch::kDouble).contiguous();
    const auto outputs = static_cast<int64_t>(rows_.outputs);
    const torch::Tensor ends = torch::empty({3, features.size(0), outputs}, torch::kDouble);
    Regions regions{ends[0], ends[1], ends[2], {}};
    for_blocks(features, [&](size_t first, const RangeRows& rows) {
      const size_t at = first * rows_.outputs;
      fill_bands(rows, radii.data_ptr<double>() + first, regions.prediction.data_ptr<double>() + at,
                 regions.lower.data_ptr<double>() + at, regions.upper.data_ptr<double>() + at);
    });
    return regions;
  }

 private:
  bool takes(const torch::Tensor& features) const {
    return !moves_.empty() && takes_features(head_, features) && features.size(0) > 0;
  }

  // Shows the hidden units of the rows, block by block, to `work`.
  template <typename Work>
  void for_blocks(const torch::Tensor& features, const Work& work) const {
    const torch::Tensor v =
        features.detach().to(torch::kCPU, torch::kFloat).flatten(1).contiguous();
    const float* from = v.data_ptr<float>();
    parallel_rows(static_cast<size_t>(v.size(0)), kNestedThread,
                  static_cast<size_t>(at::get_num_threads()), [&](size_t begin, size_t end) {
                    HiddenBlocks hidden(rows_, std::min(kNestedBlock, end - begin));
                    for (size_t first = begin; first < end; first += kNestedBlock) {
                      const size_t rows = std::min(kNestedBlock, end - first);
                      hidden.fill(rows_, from + first * rows_.features, 0, rows);
                      work(first, RangeRows{rows_, moves_, hidden, 0, rows, widening_});
                    }
                  });
  }

  // Everything at an infinite radius, nothing at a negative one.
  void fill_bands(const RangeRows& rows, const double* radius, double* prediction, double* lower,
                  double* upper) const {
    std::vector<float> at(rows.rows, 0.0f);
    ranges_at(rows, at.data(), lower, upper);
    const size_t outputs = rows_.outputs, ends = rows.rows * outputs;
    for (size_t i = 0; i < ends; ++i) {  // both ends are one number, or there is none
      prediction[i] = lower[i] == upper[i] ? lower[i] : std::nan("");
    }
    for (size_t i = 0; i < rows.rows; ++i) at[i] = radius_at_most(std::max(0.0, radius[i]));
    ranges_at(rows, at.data(), lower, upper);
    for (size_t i = 0; i < ends; ++i) {
      const double asked = radius[i / outputs];
      if (asked >= 0 && asked < kBoundless) continue;
      lower[i] = asked < 0 ? kBoundless : -kBoundless;
      upper[i] = -lower[i];
    }
  }

  ReluHead head_;
  ReluRows rows_;
  std::vector<float> moves_;
  double widening_;  // of each side, at radius 1
  std::unique_ptr<Score> general_;
};

}  // namespace

std::unique_ptr<Score> with_relu_nested(const NestedOptions& options, const Network& head,
                                        size_t output, std::unique_ptr<Score> general) {
  if (options.bound.method != BoundMethod::kIbp || options.bound.outward) return general;
  const std::optional<ReluHead> matched = match_relu_head(head, output);
  if (!matched) return general;
  if (head.device().is_cuda()) return with_relu_nested_cuda(options, *matched, std::move(general));
  if (!head.device().is_cpu()) return general;
  const size_t block = kNestedBlock * padded(static_cast<size_t>(matched->w1.size(0)));
  const size_t memory = options.bound.memory;
  if (memory > 0 && block * sizeof(float) > memory) return general;
  return std::make_unique<ReluNested>(options, *matched, std::move(general));
}

}  // namespace fcp
