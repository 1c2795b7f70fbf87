#include "fcp/scores/quantiles.h"

#include <utility>

#include "fcp/base/error.h"
#include "fcp/scores/monotone_cuda.h"
#include "fcp/scores/monotone_rows.h"
#include "fcp/scores/residual_quantiles.h"

namespace fcp {
namespace {

struct QuantilePair {
  double low = 0, high = 0, width = 0;

  bool valid() const { return !std::isnan(low) && !std::isnan(high); }

  Interval at(double radius) const { return {low - radius * width, high + radius * width}; }

  double guess(double y) const { return std::max(low - y, y - high) / width; }
};

struct QuantilePairs {
  QuantileRows rows;
  double tail;
  torch::Tensor prediction = rows.prediction;

  QuantilePair row(int64_t n, int64_t k) const {
    const std::span<const double> quantiles = rows.quantiles(n, k);
    const double low = quantile_at(quantiles, tail), high = quantile_at(quantiles, 1 - tail);
    const double center = rows.center(n, k);
    return {center + low, center + high, high - low};
  }
};

// The same on a CUDA device, operation by operation.
MovedCuda moved_pairs(const QuantileRows& rows, double tail) {
  const torch::Tensor grid =
      rows.grid.reshape({rows.prediction.size(0), rows.prediction.size(1), rows.levels()});
  const auto at = [&](double level) {
    const auto [below, share] = quantile_place(static_cast<size_t>(rows.levels()), level);
    const torch::Tensor from = grid.select(2, static_cast<int64_t>(below));
    return from + share * (grid.select(2, static_cast<int64_t>(below) + 1) - from);
  };
  const torch::Tensor low = at(tail), high = at(1 - tail);
  return {rows.prediction, rows.prediction + low, rows.prediction + high, high - low};
}

class QuantilesScore : public Score {
 public:
  QuantilesScore(const ScoreOptions& options, std::shared_ptr<const Network> head)
      : reader_(options, std::move(head)), tail_(options.tail) {
    if (!(tail_ > 0 && tail_ < 0.5)) {
      fail("quantiles: the tail is ", tail_, ", expected a number between 0 and 0.5");
    }
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if (reader_.on_cuda())
      return scores_cuda(moved_pairs(reader_.read_cuda(features), tail_), truth);
    return monotone_scores(QuantilePairs{reader_.read(features), tail_}, truth);
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if (reader_.on_cuda()) {
      return regions_cuda(moved_pairs(reader_.read_cuda(features), tail_), radius);
    }
    return monotone_regions(QuantilePairs{reader_.read(features), tail_}, radius);
  }

 private:
  QuantileReader reader_;
  double tail_;
};

}  // namespace

std::unique_ptr<Score> make_quantiles(const ScoreOptions& options,
                                      std::shared_ptr<const Network> head) {
  return std::make_unique<QuantilesScore>(options, std::move(head));
}

}  // namespace fcp
