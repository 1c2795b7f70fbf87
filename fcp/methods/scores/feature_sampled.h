// The paper's Feature CP for labels, faithfully.
//
//   score(v, k)  = ‖u_M − v‖, u_M the surrogate feature after M steps on the cross-entropy of k
//   region(v, r) = the labels predicted at v and at samples of the ball of radius r around it
//
// The two are different sets, and the law does not hold: what calibration guarantees is detection,
// score ≤ radius; the set covers as much as M, η and the number of samples happen to make it.
// Evaluations of this score print both coverages.
//
// Samples are uniform in the ball of the norm: v + r d with the same `samples` directions d for all
// rows, drawn from the seed, so that region is a fixed function of v, r and the seed. For a head
// that is one linear layer the logits at the samples are z + r W d, and only labels that can win at
// some sample are looked at.
//
// Cost: M forwards and backwards per row for the score; for the region `samples` forwards per row,
// and for a linear head `samples` times the few labels that can win. With a radius for each label,
// as many balls as a row has different radii. Reference: the paper, its appendix on classification
// and Table 3. Tested by tests/methods/scores/feature_sampled_test.cc.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "fcp/bounds/bounds.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

struct FeatureSampledOptions {
  static constexpr char kName[] = "feature_sampled";

  Norm norm = Norm::kInf;   // of feature space
  int steps = 0;            // M; 0: to be chosen
  double step_rate = 0.01;  // η
  bool adam = false;        // instead of plain descent
  int64_t samples = 1000;   // of the ball

  static std::vector<Option> rows();
  static constexpr bool searches() { return true; }
  bool operator==(const FeatureSampledOptions&) const = default;
};

std::unique_ptr<Score> make_score(const FeatureSampledOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// `count` points uniform in the unit ball of the norm: [count, dimensions] float32.
torch::Tensor ball_samples(int64_t count, int64_t dimensions, Norm norm, uint64_t seed);

}  // namespace fcp
