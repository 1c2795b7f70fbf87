#include "fcp/search/surrogate_search.h"

#include <cmath>
#include <utility>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/search/relu_search.h"

namespace fcp {

void check_differentiable(const Network& head) {
  for (const Step& step : head.steps()) {
    if (!step.op->differentiable()) fail(describe(step.node), ": has no gradient; cut later");
  }
}

SurrogateSearch::SurrogateSearch(std::shared_ptr<const Network> head, size_t output,
                                 const SearchOptions& options)
    : head_(std::move(head)), output_(output), options_(options) {
  check_differentiable(*head_);
  fast_ = make_relu_search(*head_, output_, options_);
}

torch::Tensor SurrogateSearch::error(const torch::Tensor& features,
                                     const torch::Tensor& truth) const {
  const torch::Tensor output = head_->run_rows({features})[output_];
  const int64_t rows = output.size(0);
  const torch::Tensor prediction = output.reshape({rows, -1});  // [N, K]
  if (options_.loss == SearchLoss::kCrossEntropy) {
    const torch::Tensor labels = truth.to(prediction.device(), torch::kLong).reshape({rows, 1});
    return torch::log_softmax(prediction, 1).gather(1, labels).squeeze(1).neg();
  }
  const torch::Tensor target = truth.to(prediction.options()).reshape({rows, -1});
  if (target.sizes() != prediction.sizes()) {
    fail("the target has ", target.size(1), " columns, the network answers ", prediction.size(1));
  }
  torch::Tensor squares = (prediction - target).square();
  if (!options_.weights.empty()) {
    if (static_cast<int64_t>(options_.weights.size()) != squares.size(1)) {
      fail(options_.weights.size(), " weights are given for ", squares.size(1), " outputs");
    }
    squares = squares * torch::tensor(options_.weights, squares.options());
  }
  return squares.sum(1);
}

torch::Tensor SurrogateSearch::walk(const torch::Tensor& features, const torch::Tensor& truth,
                                    int steps, const Observer& observe) const {
  if (fast_ && !observe && fast_->takes(features, truth)) {
    return fast_->walk(features, truth, steps);
  }
  torch::Tensor u = features.to(head_->device()).detach();
  torch::Tensor mean, square;  // Adam's
  for (int step = 1; step <= steps; ++step) {
    torch::Tensor gradient;
    {
      torch::AutoGradMode with_gradients(true);
      const torch::Tensor at = u.detach().requires_grad_();
      gradient = torch::autograd::grad({error(at, truth).sum()}, {at})[0];
    }
    if (options_.adam) {
      mean = mean.defined() ? 0.9 * mean + 0.1 * gradient : 0.1 * gradient;
      square =
          square.defined() ? 0.999 * square + 0.001 * gradient.square() : 0.001 * gradient.square();
      const double mean_scale = 1 - std::pow(0.9, step);
      const double square_scale = 1 - std::pow(0.999, step);
      gradient = (mean / mean_scale) / ((square / square_scale).sqrt() + 1e-8);
    }
    u = u - options_.rate * gradient;
    if (observe && !observe(step, u)) break;
  }
  return u;
}

torch::Tensor SurrogateSearch::distances(const torch::Tensor& features, const torch::Tensor& truth,
                                         int steps, DistanceOrder order,
                                         const DistanceObserver& observe) const {
  if (fast_ && fast_->takes(features, truth)) {
    return observe ? fast_->distances(features, truth, steps, order, observe)
                   : fast_->distances(features, truth, steps, order);
  }
  const torch::Tensor from = features.to(head_->device());
  const auto distance_of = [&](const torch::Tensor& found) {
    const torch::Tensor size = (found - from).flatten(1).abs();
    if (order == DistanceOrder::kLargest) return size.amax(1);
    return order == DistanceOrder::kSum ? size.sum(1) : size.square().sum(1).sqrt();
  };
  if (!observe) return distance_of(walk(features, truth, steps));
  torch::Tensor last = torch::zeros({from.size(0)}, from.options());
  walk(features, truth, steps, [&](int step, const torch::Tensor& found) {
    last = distance_of(found);
    return observe(step, last);
  });
  return last;
}

}  // namespace fcp
