// The surrogate search over tensors for heads that relu_walk.h can walk: blocks of rows that stay
// in the cache, one parallel loop over the rows, no autograd. Equal to the general search up to
// rounding. Tested by tests/search/relu_search_test.cc.
#pragma once

#include <functional>
#include <memory>

#include <torch/types.h>

#include "fcp/search/distance_order.h"
#include "fcp/search/relu_walk.h"

namespace fcp {

struct SearchOptions;

class ReluSearch {
 public:
  explicit ReluSearch(const ReluHead& head, double rate);

  // Whether features [N, …] and truth [N, 1] have the shapes of the head.
  bool takes(const torch::Tensor& features, const torch::Tensor& truth) const;

  // As SurrogateSearch::walk and ::distances.
  torch::Tensor walk(const torch::Tensor& features, const torch::Tensor& truth, int steps) const;
  torch::Tensor distances(const torch::Tensor& features, const torch::Tensor& truth, int steps,
                          DistanceOrder order) const;
  using DistanceObserver = std::function<bool(int step, const torch::Tensor& distances)>;
  torch::Tensor distances(const torch::Tensor& features, const torch::Tensor& truth, int steps,
                          DistanceOrder order, const DistanceObserver& observe) const;

 private:
  ReluHead head_;
  ReluWalk walk_;
};

// The rule: a float32 head Linear–ReLU–Linear with one output on the CPU, squared error, no Adam.
// Null otherwise.
std::shared_ptr<const ReluSearch> make_relu_search(const Network& head, size_t output,
                                                   const SearchOptions& options);

}  // namespace fcp
