// A network, cut in two, with a score over its head: what calibration runs before there is a
// radius, and what a PredictorCore runs with one.
//
//   const torch::Tensor v = network.features(x);
//   network.score().score(v, y);  network.score().region(v, radius);
//
// Tested by tests/predictor/scored_network_test.cc.
#pragma once

#include <cstdint>
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

  // The label that the network answers for each feature: the largest of the output's numbers.
  std::vector<int64_t> predicted_labels(const std::string& output,
                                        const torch::Tensor& features) const;

 private:
  std::string cut_;
  std::optional<Network> backbone_;
  std::optional<ReluLayers> layers_;  // the same, where it is a perceptron
  std::shared_ptr<const Network> head_;
  std::unique_ptr<Score> score_;
};

// What an estimated likelihood ratio looks at: x where it is a table, the features elsewhere.
torch::Tensor ratio_input(const torch::Tensor& x, const torch::Tensor& features);

}  // namespace fcp
