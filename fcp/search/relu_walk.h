// The fast path of the search for heads of the shape Linear–ReLU–Linear with one output.
//
// Idea. With p = W₁u + b₁, D = diag(p > 0) and r = w₂·Dp + b₂ − y, a step of gradient descent is
//
//   u ← u − 2η r z,   p ← p − 2η r q       z = W₁ᵀDw₂,  q = W₁z = K D w₂,  K = W₁W₁ᵀ
//
// As long as no unit flips (D stays), z and q stay, and r shrinks by the same factor at every step:
//
//   r ← (1 − 2η‖z‖²) r
//
// So the row moves along a straight line, u − T z and p − T q with T the sum of the 2η r so far,
// and only T is stepped, until it leaves the stretch lo < T < hi on which every p − T q keeps its
// sign. There, rows of K and W₁ are added to or taken from q and z for the units that flipped, and
// the next stretch begins. The steps are those of Algorithm 2, one by one, up to rounding.
//
// Assumes squared error and plain descent, float32. Cost: for M steps O((D + H) H) to begin, O(D +
// H) for each stretch, a handful on a typical row, and O(1) for each step; a distance after every
// step costs O(D) each. Tested by tests/search/relu_walk_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <torch/types.h>

#include "fcp/nn/kernels/relu_mlp/affine_rows.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {

struct ReluWalk {
  ReluRows head;
  FloatRows kernel;  // K: H rows of the hidden width
  double rate = 0;   // 2 η w
};

// `rate` is η times the weight of the output.
ReluWalk make_relu_walk(const ReluHead& head, double rate);

// Rows on their way: W₁u + b₁ and u − v, rows of the padded widths. Both are moved along.
struct ReluWalkers {
  size_t rows = 0;
  const float* truth = nullptr;
  float* hidden = nullptr;
  float* moved = nullptr;
};

// Where to put ‖u − v‖ of row i: at distances[s * stride + i] after step s, from 0, or for the last
// step alone at distances[i].
struct DistanceTrace {
  float* distances = nullptr;  // null: not wanted
  size_t stride = 0;
  bool last_only = false;
  DistanceOrder order = DistanceOrder::kLargest;
};

void walk_rows(const ReluWalk& walk, const ReluWalkers& walkers, int steps,
               const DistanceTrace& trace = {});

// The surrogate search over tensors for heads that can be walked so: blocks of rows that stay
// in the cache, one parallel loop over the rows, no autograd. Equal to the general search up to
// rounding. Tested by tests/search/relu_walk_test.cc.

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
