#include "fcp/tensors.h"

#include <torch/utils.h>

#include "fcp/facade/state.h"

namespace fcp {

TensorRegions regions(const ConformalPredictor& predictor, const torch::Tensor& x,
                      const Level& level) {
  torch::NoGradGuard no_grad;
  const TensorPredictor& tensors = predictor.state().predictor;
  const auto rows = static_cast<uint64_t>(x.dim() == 0 ? 0 : x.size(0));
  const SideInformation given{
      .groups = {}, .weights = {}, .first = predictor.state().places.answer(rows)};
  const Regions found = tensors.region(tensors.describe(x, given), level);
  return {found.prediction, found.lower, found.upper, found.members};
}

torch::Tensor features(const ConformalPredictor& predictor, const torch::Tensor& x) {
  torch::NoGradGuard no_grad;
  return predictor.state().predictor.describe(x).features;
}

std::vector<double> scores(const ConformalPredictor& predictor, const torch::Tensor& x,
                           const torch::Tensor& y) {
  torch::NoGradGuard no_grad;
  const TensorPredictor& tensors = predictor.state().predictor;
  return tensors.judge(tensors.describe(x), y).scores;
}

}  // namespace fcp
