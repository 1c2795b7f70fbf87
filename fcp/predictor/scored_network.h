// A network, cut in two, with a score over its head: what calibration, prediction and evaluation
// run.
//
//   const torch::Tensor v = predictor.features(x);
//   predictor.score().score(v, y);  predictor.score().region(v, radius);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/methods/scores/score_table.h"
#include "fcp/nn/kernels/relu_mlp/relu_layers.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

class ScoredNetwork {
 public:
  // `cut` as in cut.h; empty: the score works on the network's input.
  ScoredNetwork(const Graph& network, const ScoreOptions& score, const std::string& cut,
                torch::Device device = torch::kCPU);

  // x [N, …] → the feature of each row.
  torch::Tensor features(const torch::Tensor& x) const;

  // The score over the head; it takes features.
  const Score& score() const { return *score_; }

  const std::string& cut() const { return cut_; }  // name of the feature tensor; may be empty
  const std::shared_ptr<const Network>& shared_head() const { return head_; }

 private:
  std::string cut_;
  std::optional<Network> backbone_;
  std::optional<ReluLayers> layers_;  // the same, where it is a perceptron
  std::shared_ptr<const Network> head_;
  std::unique_ptr<Score> score_;
};

}  // namespace fcp
