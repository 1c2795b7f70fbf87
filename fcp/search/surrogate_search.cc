#include "fcp/search/surrogate_search.h"

#include <cmath>
#include <utility>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/kernels/relu_mlp/relu_descent_cuda.h"
#include "fcp/search/relu_walk.h"

namespace fcp {

void check_differentiable(const Network& head) {
  for (const Step& step : head.steps()) {
    if (!step.op->differentiable()) fail(describe(step.node), ": has no gradient; cut later");
  }
}

namespace {

// The rule of relu_descent_cuda.h.
std::optional<ReluHead> match_relu_descent(const Network& head, size_t output,
                                           const SearchOptions& options) {
  if (!kCudaKernels || !head.device().is_cuda() || !options.weights.empty() ||
      options.loss != SearchLoss::kSquaredError) {
    return std::nullopt;
  }
  std::optional<ReluHead> matched = match_relu_head(head, output);
  const bool fits = matched && matched->w2.size(0) == 1 && matched->w1.size(0) <= kReluDescentUnits;
  return fits ? matched : std::nullopt;
}

}  // namespace

SurrogateSearch::SurrogateSearch(std::shared_ptr<const Network> head, size_t output,
                                 const SearchOptions& options)
    : head_(std::move(head)), output_(output), options_(options) {
  check_differentiable(*head_);
  if (options_.adam || !options_.shortcuts) return;
  parts_ = split_head(*head_);
  fast_ = make_relu_search(*head_, output_, options_);
  fused_ = match_relu_descent(*head_, output_, options_);
}

torch::Tensor SurrogateSearch::loss(const torch::Tensor& output, const torch::Tensor& truth) const {
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
  if (options_.weights.empty()) return squares.sum(1);
  const bool image = output.dim() > 2;
  if (image) squares = squares.reshape({rows, output.size(1), -1}).mean(2);  // [N, C]
  if (static_cast<int64_t>(options_.weights.size()) != squares.size(1)) {
    fail(options_.weights.size(), " weights are given for ", squares.size(1),
         image ? " channels" : " outputs");
  }
  return (squares * torch::tensor(options_.weights, squares.options())).sum(1);
}

torch::Tensor SurrogateSearch::error(const torch::Tensor& features,
                                     const torch::Tensor& truth) const {
  return loss(head_->run_rows({features})[output_], truth);
}

torch::Tensor SurrogateSearch::gradient(const Network& network, const torch::Tensor& at,
                                        const torch::Tensor& truth) const {
  torch::AutoGradMode with_gradients(true);
  const torch::Tensor leaf = at.detach().requires_grad_();
  const torch::Tensor sum = loss(network.run_rows({leaf})[output_], truth).sum();
  return torch::autograd::grad({sum}, {leaf})[0];
}

torch::Tensor SurrogateSearch::moved_behind(const torch::Tensor& from, const torch::Tensor& truth,
                                            int steps, const Observer& observe) const {
  torch::NoGradGuard no_gradients;
  torch::Tensor p = parts_.front->forward(from);
  torch::Tensor sum = torch::zeros_like(p);
  const auto moved = [&] { return -options_.rate * parts_.front->transpose(sum); };
  for (int step = 1; step <= steps; ++step) {
    const torch::Tensor slope = gradient(*parts_.rest, p, truth);
    sum += slope;
    if (step < steps) p = p - options_.rate * parts_.front->gram(slope);
    if (!observe) continue;
    const torch::Tensor now = moved();
    if (!observe(step, now) || step == steps) return now;
  }
  return moved();
}

torch::Tensor SurrogateSearch::moved_fused(const torch::Tensor& from, const torch::Tensor& truth,
                                           int steps) const {
  if constexpr (kCudaKernels) {
    torch::NoGradGuard no_gradients;
    const torch::Tensor v = from.flatten(1);
    const torch::Tensor sum =
        relu_descent_cuda(torch::addmm(fused_->b1, v, fused_->w1.t()),
                          truth.to(v.options()).reshape({-1}), fused_->w1.mm(fused_->w1.t()),
                          fused_->w2[0], fused_->b2[0].item<double>(), steps, options_.rate);
    return -sum.mm(fused_->w1).reshape(from.sizes());
  }
  return {};  // match_relu_descent finds none
}

torch::Tensor SurrogateSearch::walk(const torch::Tensor& features, const torch::Tensor& truth,
                                    int steps, const Observer& observe) const {
  if (fast_ && !observe && fast_->takes(features, truth)) {
    return fast_->walk(features, truth, steps);
  }
  torch::Tensor u = features.to(head_->device()).detach();
  if (fused_ && !observe && takes_features(*fused_, u)) return u + moved_fused(u, truth, steps);
  if (parts_.front) {
    const auto shown = [&](int step, const torch::Tensor& moved) {
      return observe(step, u + moved);
    };
    return u + moved_behind(u, truth, steps, observe ? shown : Observer());
  }
  torch::Tensor mean, square;  // Adam's
  for (int step = 1; step <= steps; ++step) {
    torch::Tensor slope = gradient(*head_, u, truth);
    if (options_.adam) {
      mean = mean.defined() ? 0.9 * mean + 0.1 * slope : 0.1 * slope;
      square = square.defined() ? 0.999 * square + 0.001 * slope.square() : 0.001 * slope.square();
      const double mean_scale = 1 - std::pow(0.9, step);
      const double square_scale = 1 - std::pow(0.999, step);
      slope = (mean / mean_scale) / ((square / square_scale).sqrt() + 1e-8);
    }
    u = u - options_.rate * slope;
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
  const auto size_of = [&](const torch::Tensor& moved) {
    const torch::Tensor size = moved.flatten(1).abs();
    if (order == DistanceOrder::kLargest) return size.amax(1);
    return order == DistanceOrder::kSum ? size.sum(1) : size.square().sum(1).sqrt();
  };
  if (fused_ && !observe && takes_features(*fused_, from)) {
    return size_of(moved_fused(from, truth, steps));
  }
  const auto shown = [&](int step, const torch::Tensor& moved) {
    return observe(step, size_of(moved));
  };
  if (parts_.front) {  // what moved is known better than the difference of two features
    return size_of(moved_behind(from, truth, steps, observe ? shown : Observer()));
  }
  const auto seen = [&](int step, const torch::Tensor& found) { return shown(step, found - from); };
  return size_of(walk(features, truth, steps, observe ? seen : Observer()) - from);
}

}  // namespace fcp
