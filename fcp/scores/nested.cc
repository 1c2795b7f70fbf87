#include "fcp/scores/nested.h"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/scores/outputs.h"

namespace fcp {
namespace {

constexpr int32_t kInfinityBits = 0x7f800000;  // of the float32 +∞
constexpr int64_t kMostSearchedOutputs = 256;  // one search each where bands are not nested

struct Band {
  torch::Tensor lower;  // [N, K] doubles
  torch::Tensor upper;
};

class Nested : public Score {
 public:
  Nested(const ScoreOptions& options, std::shared_ptr<const Network> head)
      : head_(std::move(head)),
        bounds_(make_bounds(head_, options.bound)),
        output_(output_index(*head_, options.output)),
        norm_(options.norm),
        widening_(options.floor * options.slope / 2) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const torch::Tensor center = prediction(features);    // [N, K]
    const torch::Tensor y = truth_matrix(truth, center);  // [N, K]
    const torch::Tensor unknown = y.isnan().logical_or(center.isnan()).any(1);
    const HeadBounds::RangesAt ranges = bounds_->around({features, {}, norm_, {}});
    if (bounds_->monotone()) {
      return plain_scores(search(
          features,
          [&](const torch::Tensor& radius) {
            return inside(band(ranges, center, radius), y).all(1);
          },
          unknown));
    }
    if (y.size(1) > kMostSearchedOutputs) {
      fail("nested with this bound searches each of the ", y.size(1),
           " outputs by itself; use --bound ibp for more than ", kMostSearchedOutputs);
    }
    torch::Tensor largest = torch::zeros({y.size(0)}, y.options());
    for (int64_t k = 0; k < y.size(1); ++k) {
      largest =
          torch::maximum(largest, search(
                                      features,
                                      [&](const torch::Tensor& radius) {
                                        return inside(band(ranges, center, radius), y).select(1, k);
                                      },
                                      unknown));
    }
    return plain_scores(largest);
  }

  Regions region(const torch::Tensor& features, double radius) const override {
    Regions regions{prediction(features), {}, {}};
    const torch::Tensor infinity =
        torch::full_like(regions.prediction, std::numeric_limits<double>::infinity());
    if (std::isinf(radius) && radius > 0) {
      regions.lower = -infinity;
      regions.upper = infinity;
      return regions;
    }
    const int32_t leaf = bits_below(radius);
    Band result{infinity, -infinity};  // empty
    if (bounds_->monotone()) {
      if (leaf >= 0) result = band(features, regions.prediction, std::bit_cast<float>(leaf));
    } else {
      for (const auto& [bits, wider] : path_upwards(leaf)) {
        const Band next = band(features, regions.prediction, std::bit_cast<float>(bits));
        result.lower = wider ? torch::minimum(next.lower, result.lower)
                             : torch::maximum(next.lower, result.lower);
        result.upper = wider ? torch::maximum(next.upper, result.upper)
                             : torch::minimum(next.upper, result.upper);
      }
    }
    regions.lower = result.lower;
    regions.upper = result.upper;
    return regions;
  }

 private:
  torch::Tensor prediction(const torch::Tensor& features) const {
    return output_matrix(head_->run_rows({features})[output_]);
  }

  // The band of each row at its own radius, [N], and around its prediction, `center`, whatever
  // rounding did to the range.
  Band band(const HeadBounds::RangesAt& ranges, const torch::Tensor& center,
            const torch::Tensor& radius) const {
    const Range range = ranges(radius)[output_];
    const torch::Tensor margin = radius.to(torch::kDouble).unsqueeze(1) * widening_;  // [N, 1]
    return {torch::minimum(without_nan(output_matrix(range.lower) - margin, -1), center),
            torch::maximum(without_nan(output_matrix(range.upper) + margin, +1), center)};
  }

  Band band(const torch::Tensor& features, const torch::Tensor& center, float radius) const {
    return band(bounds_->around({features, {}, norm_, {}}), center,
                torch::full({features.size(0)}, radius, features.options()));
  }

  // Radii near the end of float32 make ∞ − ∞ inside a range, which says nothing about y.
  static torch::Tensor without_nan(const torch::Tensor& end, double sign) {
    return torch::nan_to_num(end, sign * std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity());
  }

  static torch::Tensor inside(const Band& band, const torch::Tensor& y) {
    return (band.lower <= y).logical_and(y <= band.upper);
  }

  // The smallest radius of each row for which `holds` is true, by bisection over its bits; NaN
  // where `unknown`.
  torch::Tensor search(const torch::Tensor& features,
                       const std::function<torch::Tensor(const torch::Tensor&)>& holds,
                       const torch::Tensor& unknown) const {
    const auto bits = torch::dtype(torch::kInt).device(features.device());
    torch::Tensor below = torch::full({unknown.size(0)}, -1, bits);  // does not hold
    torch::Tensor above = torch::full({unknown.size(0)}, kInfinityBits, bits);
    for (int step = 0; step < 31; ++step) {  // 2^31 > kInfinityBits + 1 patterns
      const torch::Tensor middle = below + (above - below).div(2, "floor");
      const torch::Tensor safe = middle.clamp_min(0);
      const torch::Tensor yes = holds(safe.view(torch::kFloat)).logical_and(middle > below);
      above = torch::where(yes, middle, above);
      below = torch::where(yes, below, middle);
    }
    const torch::Tensor radius = above.contiguous().view(torch::kFloat).to(torch::kDouble);
    const torch::Tensor nan = torch::full_like(radius, std::numeric_limits<double>::quiet_NaN());
    return torch::where(unknown, nan, radius);
  }

  // The bits of the largest float32 ≤ radius; -1 where the radius is negative.
  static int32_t bits_below(double radius) {
    if (radius < 0) return -1;
    float value = static_cast<float>(radius);
    if (static_cast<double>(value) > radius) value = std::nextafter(value, 0.0f);
    return std::bit_cast<int32_t>(value);
  }

  // The radii that the bisection for `leaf` looks at, from the last to the first, and whether each
  // lies at or below the leaf.
  static std::vector<std::pair<int32_t, bool>> path_upwards(int32_t leaf) {
    std::vector<std::pair<int32_t, bool>> path;
    int32_t below = -1;
    int32_t above = kInfinityBits;
    while (above - below > 1) {
      const int32_t middle = below + (above - below) / 2;
      const bool wider = leaf >= middle;
      path.emplace_back(middle, wider);
      (wider ? below : above) = middle;
    }
    return {path.rbegin(), path.rend()};
  }

  std::shared_ptr<const Network> head_;
  std::unique_ptr<HeadBounds> bounds_;
  size_t output_;
  Norm norm_;
  double widening_;  // of each side, at radius 1
};

}  // namespace

std::unique_ptr<Score> make_nested(const ScoreOptions& options,
                                   std::shared_ptr<const Network> head) {
  return std::make_unique<Nested>(options, std::move(head));
}

}  // namespace fcp
