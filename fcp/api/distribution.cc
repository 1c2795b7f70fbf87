#include "fcp/distribution.h"

#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {
namespace {

using internal::Access;
using internal::BatchData;
using internal::PredictorCore;

TestInputs rows_of(const Predictor& predictor, const PredictiveDistribution& distribution,
                   const Batch& batch) {
  const BatchData& data = Access::data(batch);
  Access::core(predictor).schema().check_known(data);
  return distribution.describe(data.x, data.known);
}

void check_threshold(double threshold) {
  if (std::isnan(threshold)) fail("the threshold is NaN, expected a number");
}

}  // namespace

Distribution::Distribution(Predictor predictor) : predictor_(std::move(predictor)) {
  const PredictorCore& core = Access::core(predictor_);
  distribution_ = std::make_shared<const PredictiveDistribution>(core.artifact(), core.device());
}

std::vector<double> Distribution::quantiles(const Batch& batch,
                                            const std::vector<Level>& probabilities) const {
  if (probabilities.empty()) return {};
  const torch::Tensor found =
      distribution_->quantiles(rows_of(predictor_, *distribution_, batch), probabilities);
  return {found.data_ptr<double>(), found.data_ptr<double>() + found.numel()};
}

std::vector<Interval> Distribution::above(const Batch& batch, double threshold) const {
  check_threshold(threshold);
  return distribution_->probability(rows_of(predictor_, *distribution_, batch),
                                    {.from = threshold});
}

std::vector<Interval> Distribution::below(const Batch& batch, double threshold) const {
  check_threshold(threshold);
  return distribution_->probability(rows_of(predictor_, *distribution_, batch), {.to = threshold});
}

std::vector<Interval> Distribution::between(const Batch& batch, double from, double to) const {
  if (!(from < to)) fail("between ", from, " and ", to, ": expected the smaller number first");
  return distribution_->probability(rows_of(predictor_, *distribution_, batch), {from, to});
}

}  // namespace fcp
