#include "fcp/scores/density_level_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/scores/density.h"
#include "fcp/scores/monotone_rows.h"
#include "fcp/scores/region_measures.h"
#include "fcp/scores/residual_quantiles.h"

namespace fcp {
namespace {

// How far the tail of scale s reaches where gaps up to `gap` are in: gap = s (1 + x/s)².
double tail_reach(double scale, double gap) {
  return scale == 0 ? gap : scale * std::max(0.0, std::sqrt(gap / scale) - 1);
}

class DensityLevelSet : public Score {
 public:
  DensityLevelSet(const ScoreOptions& options, std::shared_ptr<const Network> head)
      : reader_(options, std::move(head)), scale_(options.scale) {
    for (const double scale : scale_) {
      if (!(scale > 0)) fail("density: the scale of an output is ", scale, ", expected > 0");
    }
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const QuantileRows rows = read(features);
    const torch::Tensor y = truth_matrix(truth.to(torch::kCPU), rows.prediction).contiguous();
    std::vector<double> scores(static_cast<size_t>(y.size(0)),
                               -std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t n = i / y.size(1);
      const double own = score_one(rows, n, i % y.size(1), y.data_ptr<double>()[i]);
      double& largest = scores[static_cast<size_t>(n)];
      largest = std::isnan(own) || std::isnan(largest) ? std::nan("") : std::max(largest, own);
    }
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const QuantileRows rows = read(features);
    const torch::Tensor column = radius_column(radius, rows.prediction).contiguous();
    std::vector<std::vector<Interval>> sets;
    for (int64_t i = 0; i < rows.prediction.numel(); ++i) {
      const int64_t n = i / rows.prediction.size(1);
      sets.push_back(set_at(rows, n, i % rows.prediction.size(1), column.data_ptr<double>()[n]));
    }
    return regions_of_unions(rows.prediction, sets);
  }

 private:
  QuantileRows read(const torch::Tensor& features) const {
    QuantileRows rows = reader_.read(features);
    if (!scale_.empty() && static_cast<int64_t>(scale_.size()) != rows.prediction.size(1)) {
      fail("density: ", scale_.size(), " scales for ", rows.prediction.size(1), " outputs");
    }
    return rows;
  }

  std::vector<Interval> set_at(const QuantileRows& rows, int64_t n, int64_t k,
                               double radius) const {
    if (radius == std::numeric_limits<double>::infinity()) return {Interval{}};
    const double unit = scale_.empty() ? 1 : scale_[static_cast<size_t>(k)];
    return density_level_set(rows.center(n, k), rows.quantiles(n, k), radius * unit);
  }

  double score_one(const QuantileRows& rows, int64_t n, int64_t k, double y) const {
    const double center = rows.center(n, k);
    const std::span<const double> q = rows.quantiles(n, k);
    if (std::isnan(y) || std::isnan(center) || std::isnan(q[0])) return std::nan("");
    const auto holds = [&](double radius) {
      const std::vector<Interval> set = set_at(rows, n, k, radius);
      return std::any_of(set.begin(), set.end(),
                         [y](const Interval& part) { return part.contains(y); });
    };
    return least_radius(
        holds, guess(center, q, y) / (scale_.empty() ? 1 : scale_[static_cast<size_t>(k)]));
  }

  static double guess(double center, std::span<const double> q, double y) {
    const double residual = y - center;
    const size_t last = q.size() - 1;
    if (residual < q[0] || residual > q[last]) {
      const bool below = residual < q[0];
      const double s = tail_scale(below ? q[1] - q[0] : q[last] - q[last - 1], q);
      const double beyond = below ? q[0] - residual : residual - q[last];
      return s == 0 ? beyond : s * (1 + beyond / s) * (1 + beyond / s);
    }
    const auto above = std::lower_bound(q.begin() + 1, q.end(), residual);
    return *above - *(above - 1);
  }

  QuantileReader reader_;
  std::vector<double> scale_;
};

}  // namespace

std::vector<Interval> density_level_set(double center, std::span<const double> quantiles,
                                        double longest_gap) {
  if (std::isnan(center) || std::isnan(quantiles[0])) return {{std::nan(""), std::nan("")}};
  std::vector<Interval> set;
  const auto add = [&](double from, double to) {
    const Interval part{center + from, center + to};
    if (!set.empty() && set.back().upper >= part.lower) {
      set.back().upper = part.upper;
    } else {
      set.push_back(part);
    }
  };
  const size_t last = quantiles.size() - 1;
  const double low = tail_scale(quantiles[1] - quantiles[0], quantiles);
  const double high = tail_scale(quantiles[last] - quantiles[last - 1], quantiles);
  if (low <= longest_gap) add(quantiles[0] - tail_reach(low, longest_gap), quantiles[0]);
  for (size_t i = 0; i < last; ++i) {
    if (quantiles[i + 1] - quantiles[i] <= longest_gap) add(quantiles[i], quantiles[i + 1]);
  }
  if (high <= longest_gap) add(quantiles[last], quantiles[last] + tail_reach(high, longest_gap));
  return set;
}

std::unique_ptr<Score> make_density_level_set(const ScoreOptions& options,
                                              std::shared_ptr<const Network> head) {
  return std::make_unique<DensityLevelSet>(options, std::move(head));
}

}  // namespace fcp
