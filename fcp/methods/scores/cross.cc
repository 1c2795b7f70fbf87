#include "fcp/scores/cross.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/conformal/interval.h"
#include "fcp/network/batch_free.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/monotone_rows.h"

namespace fcp {
namespace {

struct CrossRow {
  double prediction = 0;
  std::span<const double> low, high;  // [n]

  bool valid() const {
    const auto is_nan = [](double value) { return std::isnan(value); };
    return !std::isnan(prediction) && std::none_of(low.begin(), low.end(), is_nan) &&
           std::none_of(high.begin(), high.end(), is_nan);
  }

  double score(double y) const {
    if (!valid() || std::isnan(y)) return std::nan("");
    const auto above = std::count_if(low.begin(), low.end(), [&](double a) { return a > y; });
    const auto below = std::count_if(high.begin(), high.end(), [&](double b) { return b < y; });
    return 1 + static_cast<double>(std::max(above, below));
  }

  Interval at(double radius) const {
    const double infinity = std::numeric_limits<double>::infinity();
    if (!valid()) return {std::nan(""), std::nan("")};
    const auto n = static_cast<double>(low.size());
    if (!(radius >= 1)) return {infinity, -infinity};
    if (radius >= n + 1) return {-infinity, infinity};
    const auto k = static_cast<size_t>(radius);
    return {kth(low, low.size() + 1 - k), kth(high, k)};
  }

 private:
  static double kth(std::span<const double> values, size_t k) {
    std::vector<double> all(values.begin(), values.end());
    const auto place = all.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(all.begin(), place, all.end());
    return *place;
  }
};

class Cross : public Score {
 public:
  Cross(const ScoreOptions& options, std::shared_ptr<const Network> head)
      : head_(std::move(head)),
        output_(output_index(*head_, options.output)),
        low_(output_index(*head_, kCrossLowOutput)),
        high_(output_index(*head_, kCrossHighOutput)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const CrossRows rows = rows_of(features);
    const torch::Tensor y = truth_matrix(truth.to(torch::kCPU), rows.prediction).contiguous();
    std::vector<double> scores;
    for (int64_t n = 0; n < y.size(0); ++n) {
      scores.push_back(rows.row(n).score(y.data_ptr<double>()[n]));
    }
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const CrossRows rows = rows_of(features);
    const torch::Tensor radii = radius_column(radius, rows.prediction).contiguous();
    Regions regions{rows.prediction,
                    torch::empty_like(rows.prediction),
                    torch::empty_like(rows.prediction),
                    {},
                    {}};
    for (int64_t n = 0; n < rows.prediction.size(0); ++n) {
      const Interval interval = rows.row(n).at(radii.data_ptr<double>()[n]);
      regions.lower.data_ptr<double>()[n] = interval.lower;
      regions.upper.data_ptr<double>()[n] = interval.upper;
    }
    return regions;
  }

 private:
  struct CrossRows {
    torch::Tensor prediction, low, high;  // [N, 1], [N, n], [N, n]

    CrossRow row(int64_t n) const {
      const int64_t count = low.size(1);
      const auto part = [&](const torch::Tensor& values) {
        return std::span(values.data_ptr<double>() + n * count, static_cast<size_t>(count));
      };
      return {prediction.data_ptr<double>()[n], part(low), part(high)};
    }
  };

  CrossRows rows_of(const torch::Tensor& features) const {
    const Tensors outputs = run_apart(*head_, {features});
    const CrossRows rows{plain_matrix(outputs[output_]), plain_matrix(outputs[low_]),
                         plain_matrix(outputs[high_])};
    if (rows.prediction.size(1) != 1 || rows.low.sizes() != rows.high.sizes()) {
      fail("cross: found ", rows.prediction.size(1), " predictions with ", rows.low.size(1),
           " lower and ", rows.high.size(1), " upper ends, expected one with as many of both");
    }
    return rows;
  }

  std::shared_ptr<const Network> head_;
  size_t output_, low_, high_;
};

}  // namespace

std::unique_ptr<Score> make_cross(const ScoreOptions& options,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<Cross>(options, std::move(head));
}

}  // namespace fcp
