// Several small perceptrons with one hidden layer, fitted side by side in batched products: the
// heads on frozen features.
//
//   hidden = ReLU(u W + p P + b),   output = hidden V + c
//
// Each member e has its own rows: features u [n_e, D], which are standardised and clipped at ±8 (so
// that no row can drive a head to extremes), predictions p [n_e, K], treated alike, and targets.
// AdamW with a falling rate (cosine) minimises the sum of the members' mean losses, rows counted by
// their weights. A share of each member's rows is held out; the weights of the epoch that is best
// there are kept, member by member, the start included: a head that finds nothing to learn answers
// what `start` says.
//
// Cost: epochs · rows · (D + K) · hidden · 4 multiplications; the number of epochs falls where the
// rows are many. Deterministic by seed. Tested by tests/training/heads_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

namespace fcp {

// E members side by side.
struct Perceptrons {
  torch::Tensor feature_mean, feature_deviation;        // [E, 1, D]
  torch::Tensor prediction_mean, prediction_deviation;  // [E, 1, K]
  torch::Tensor feature_weight;                         // W [E, D, H]
  torch::Tensor prediction_weight;                      // P [E, K, H]
  torch::Tensor hidden_bias;                            // b [E, 1, H]
  torch::Tensor output_weight;                          // V [E, H, O]
  torch::Tensor output_bias;                            // c [E, 1, O]

  int64_t members() const { return feature_weight.size(0); }

  // u [E, N, D] and p [E, N, K] as they are → [E, N, O].
  torch::Tensor forward(const torch::Tensor& u, const torch::Tensor& p) const;
  // The same of one member: u [N, D], p [N, K] → [N, O].
  torch::Tensor member_forward(int64_t member, const torch::Tensor& u,
                               const torch::Tensor& p) const;
};

inline constexpr double kFeatureClip = 8;

struct PerceptronRows {
  torch::Tensor features;         // [n, D] float
  torch::Tensor prediction;       // [n, K] float
  torch::Tensor target;           // [n, …] float
  std::vector<int64_t> groups{};  // [n]: rows of one are held out together; empty: each is its own
  torch::Tensor weight{};         // [n] float, of the loss; undefined: all 1
};

struct PerceptronFit {
  int64_t hidden = 64;
  int64_t batch = 256;
  double rate = 3e-3;
  double weight_decay = 1e-2;
  double holdout = 0.15;  // share of each member's rows
  int64_t patience = 6;   // epochs without a better one, in all members, before it stops
  uint64_t seed = 0;
};

// output [E, B, O], target [E, B, …] → the loss of each row, [E, B].
using PerceptronLoss =
    std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)>;

// All members have as many columns. `start` [O] is what the perceptrons answer before training.
// Throws Interrupted between batches.
Perceptrons fit_perceptrons(const std::vector<PerceptronRows>& members, const torch::Tensor& start,
                            const PerceptronLoss& loss, const PerceptronFit& options);

}  // namespace fcp
