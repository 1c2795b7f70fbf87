#include "fcp/methods/scores/one_sided.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/special_numbers.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/outputs.h"

namespace fcp {
namespace {

constexpr double kWidestPair = 1e150;  // a product with any radius that matters stays finite

struct EndPair {
  double low = 0, high = 0, width = 0;

  bool valid() const { return !std::isnan(low) && !std::isnan(high) && !std::isnan(width); }
  Interval at(double radius) const { return {low - radius * width, high + radius * width}; }
};

// Around the radius at which y reaches the end.
struct LowerEnd : EndPair {
  double guess(double y) const { return (low - y) / width; }
};
struct UpperEnd : EndPair {
  double guess(double y) const { return (y - high) / width; }
};

class EndScore : public Score {
 public:
  EndScore(ReadEndPairs read, BoundSide side) : read_(std::move(read)), side_(side) {}

  int64_t sides() const override { return side_ == BoundSide::kBoth ? 2 : 1; }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Rows rows{read_(features)};
    if (side_ == BoundSide::kLower) return monotone_scores(rows.lower_ends(), truth, side_);
    if (side_ == BoundSide::kUpper) return monotone_scores(rows.upper_ends(), truth, side_);
    const auto below = monotone_scores(rows.lower_ends(), truth, BoundSide::kLower);
    const auto above = monotone_scores(rows.upper_ends(), truth, BoundSide::kUpper);
    std::vector<double> both;
    for (size_t i = 0; i < below.size(); ++i) both.insert(both.end(), {below[i], above[i]});
    return both;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Rows rows{read_(features)};
    if (side_ == BoundSide::kLower) return monotone_regions(rows.lower_ends(), radius, side_);
    if (side_ == BoundSide::kUpper) return monotone_regions(rows.upper_ends(), radius, side_);
    check_radii(radius, rows.pairs.prediction.size(0), 2);
    Regions both = monotone_regions(rows.lower_ends(), radius.narrow(1, 0, 1), BoundSide::kLower);
    both.upper =
        monotone_regions(rows.upper_ends(), radius.narrow(1, 1, 1), BoundSide::kUpper).upper;
    both.side = BoundSide::kBoth;
    return both;
  }

 private:
  template <typename End>
  struct Ends {
    const EndPairs& pairs;
    torch::Tensor prediction = pairs.prediction;

    End row(int64_t n, int64_t k) const {
      const int64_t at = n * prediction.size(1) + k;
      const double width = pairs.width.data_ptr<double>()[at];
      return {{pairs.low.data_ptr<double>()[at], pairs.high.data_ptr<double>()[at],
               std::isnan(width) ? width : std::clamp(width, 0.0, kWidestPair)}};
    }
  };

  struct Rows {
    EndPairs pairs;

    Ends<LowerEnd> lower_ends() const { return {pairs}; }
    Ends<UpperEnd> upper_ends() const { return {pairs}; }
  };

  ReadEndPairs read_;
  BoundSide side_;
};

class OneEnd : public Score {
 public:
  OneEnd(std::unique_ptr<Score> two_sided, BoundSide side)
      : two_sided_(std::move(two_sided)), side_(side) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const std::vector<double> both = two_sided_->score(features, truth);
    std::vector<double> own;
    own.reserve(both.size() / 2);
    for (size_t i = side_ == BoundSide::kUpper ? 1 : 0; i < both.size(); i += 2) {
      own.push_back(both[i]);
    }
    return own;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    check_radii(radius, features.size(0), 1);
    const torch::Tensor other = torch::full_like(radius, kInfinity);
    const bool upper = side_ == BoundSide::kUpper;
    Regions regions = two_sided_->region(
        features, torch::cat({upper ? other : radius, upper ? radius : other}, 1));
    regions.side = side_;
    return regions;
  }

 private:
  std::unique_ptr<Score> two_sided_;
  BoundSide side_;
};

}  // namespace

std::unique_ptr<Score> make_end_score(ReadEndPairs read, BoundSide side) {
  return std::make_unique<EndScore>(std::move(read), side);
}

std::unique_ptr<Score> one_end_of(std::unique_ptr<Score> two_sided, BoundSide side) {
  if (side == BoundSide::kBoth) return two_sided;
  return std::make_unique<OneEnd>(std::move(two_sided), side);
}

}  // namespace fcp
