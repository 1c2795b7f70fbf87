// The surrogate feature: a feature near v whose prediction is the truth, found by gradient descent
// on the squared error, as the paper's Algorithm 2 does, or on the cross-entropy of a label.
//
//   u_0 = v,    u_{m+1} = u_m − η ∇_u Σ_k w_k (g_k(u_m) − y_k)²     or  − log softmax(g(u_m))_y
//
// Each row descends by itself; features may leave the range the backbone can reach (the paper's
// code lets them). One trajectory gives the features of every number of steps M on its way. With
// Adam the same gradient feeds Adam's update (β₁ = 0.9, β₂ = 0.999, ε = 1e-8).
//
// Plain descent takes the cheapest way to the same features, up to rounding, where `shortcuts`
// allows it:
//   - a head Linear–ReLU–Linear with one output: in straight stretches on the CPU (relu_walk.h),
//     in one launch on a CUDA device (relu_descent_cuda.h), unless features are observed;
//   - any head behind its first layer where front_layer.h knows it;
//   - forward and backward through the whole head otherwise.
//
// Assumes that every op of the head is differentiable. Cost: one forward and one backward per step;
// the shortcuts say theirs.
// Reference: the paper, Algorithm 2; plain descent matches its code step by step.
// Tested by tests/search/surrogate_search_test.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/relu_mlp/relu_head.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/search/front_layer.h"

namespace fcp {

// The norm by which a surrogate feature is far from the feature it began at.

enum class DistanceOrder { kLargest, kEuclidean, kSum };  // ℓ∞, ℓ2, ℓ1

class ReluSearch;

enum class SearchLoss { kSquaredError, kCrossEntropy };

struct SearchOptions {
  double rate = 0.01;  // η
  bool adam = false;
  // w, one an output; empty: all 1. For an output [N, C, H, W] one a channel, and the error of a
  // channel is then the mean over its pixels, as networks of images are trained.
  std::vector<double> weights{};
  SearchLoss loss = SearchLoss::kSquaredError;
  bool shortcuts = true;  // false: by forward and backward through the whole head
};

// Refuses a head that cannot be differentiated, naming the node.
void check_differentiable(const Network& head);

class SurrogateSearch {
 public:
  // `output` is the index of the head's output that predicts.
  SurrogateSearch(std::shared_ptr<const Network> head, size_t output,
                  const SearchOptions& options = {});

  // Walks `steps` steps from `features` [N, …] towards `truth` [N, K] (labels [N, 1] for
  // cross-entropy). `observe` is called after
  // every step with its number, from 1, and the features then; it ends the walk by returning false.
  // Returns the last features.
  using Observer = std::function<bool(int step, const torch::Tensor& features)>;
  torch::Tensor walk(const torch::Tensor& features, const torch::Tensor& truth, int steps,
                     const Observer& observe = {}) const;

  // How far each row is from where it began, [N]: ‖u − v‖ after the last step. `observe` is
  // called with the distances after every step and ends the walk by returning false. Faster than
  // walk, because the features themselves are not made where they are not needed.
  using DistanceObserver = std::function<bool(int step, const torch::Tensor& distances)>;
  torch::Tensor distances(const torch::Tensor& features, const torch::Tensor& truth, int steps,
                          DistanceOrder order, const DistanceObserver& observe = {}) const;

  // The loss of each row, [N].
  torch::Tensor error(const torch::Tensor& features, const torch::Tensor& truth) const;

 private:
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& truth) const;
  torch::Tensor gradient(const Network& network, const torch::Tensor& at,
                         const torch::Tensor& truth) const;
  // u − v after the last step; shown to `observe` after every step.
  torch::Tensor moved_behind(const torch::Tensor& from, const torch::Tensor& truth, int steps,
                             const Observer& observe) const;
  torch::Tensor moved_fused(const torch::Tensor& from, const torch::Tensor& truth, int steps) const;

  std::shared_ptr<const Network> head_;
  size_t output_;
  SearchOptions options_;
  std::shared_ptr<const ReluSearch> fast_;  // null, empty, nothing: not for this head
  std::optional<ReluHead> fused_;
  SplitHead parts_;
};

}  // namespace fcp
