#include "fcp/scores/quantiles.h"

#include <utility>

#include "fcp/base/error.h"
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
    return monotone_scores(QuantilePairs{reader_.read(features), tail_}, truth);
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
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
