#include "fcp/tensors.h"

#include <torch/utils.h>

#include "fcp/facade/state.h"

namespace fcp {

TensorRegions regions(const ConformalPredictor& predictor, const torch::Tensor& x,
                      const Level& level, const RowInfo& info) {
  torch::NoGradGuard no_grad;
  const ConformalPredictor::State& state = predictor.state();
  const Regions found = state.predictor.region(state.answered(x, info), level);
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
  return tensors.score().score(tensors.describe(x).features, y);
}

}  // namespace fcp
