#include "fcp/probabilities.h"

#include <utility>

#include "fcp/predictor/distribution.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {
namespace {

std::vector<double> plain_numbers(const torch::Tensor& numbers) {
  if (!numbers.defined()) return {};
  return {numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel()};
}

}  // namespace

Probabilities::Probabilities(Predictor predictor) : predictor_(std::move(predictor)) {
  const internal::PredictorCore& core = internal::Access::core(predictor_);
  probabilities_ = std::make_shared<const ClassProbabilities>(core.network(), core.artifact());
}

bool Probabilities::calibrated() const { return probabilities_->calibrated(); }

RowProbabilities Probabilities::of(const Batch& batch) const {
  const ClassChances found = probabilities_->of(internal::Access::data(batch).x);
  return {plain_numbers(found.merged), plain_numbers(found.p0), plain_numbers(found.p1)};
}

}  // namespace fcp
