// The probabilities of the classes of a row: those of the network, and those that Venn–Abers
// prediction makes of them (fcp/conformal/venn_abers.h) where the predictor was calibrated so.
//
// Each class stands against the rest: the score of a row is the network's probability of the class,
// and its label is whether it is of the class. Of two classes the second one alone is fitted; the
// first has one minus its numbers. Of more the merged probabilities, which need not add up to 1,
// are divided by their sum. The promise is that of each pair (p0, p1); merging and dividing promise
// nothing.
//
// Tested by tests/predictor/class_probabilities_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/conformal/venn_abers.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {

// The softmax of a network's logits at the temperature of its score, 1 where it has none. An Error
// where the score gives intervals, or sets for pixels.
class LogitShares {
 public:
  LogitShares(const ScoredNetwork& network, const ScoreOptions& score);

  int64_t classes() const { return head_.classes; }

  // features [N, …] → [N, C] doubles on the CPU; NaN where an infinite logit leaves none.
  torch::Tensor of(const torch::Tensor& features) const;

  // What is fitted: of two classes the second one's, [N, 1].
  torch::Tensor scores(const torch::Tensor& features) const;

 private:
  LogitHead head_;
  double temperature_;
};

// From the scores of rows [N × S], row by row, and their labels: S predictors, in the order of the
// classes.
std::vector<VennAbers> fit_chances(std::span<const double> scores, std::span<const int64_t> labels);

// An Error where there are some, but not for a network of so many classes.
void check_chances(const std::vector<VennAbers>& fitted, int64_t classes);

// [N, C] doubles on the CPU. The pair is undefined where the predictor has none.
struct ClassChances {
  torch::Tensor merged, p0, p1;

  bool calibrated() const { return p0.defined(); }
  // Side by side: [N, C], or with the pair [N, 3 C].
  torch::Tensor columns() const;
};

class ClassProbabilities {
 public:
  // Both must outlive this.
  ClassProbabilities(const ScoredNetwork& network, const CalibrationArtifact& artifact);

  const LogitShares& shares() const { return shares_; }
  bool calibrated() const { return !fitted_.empty(); }

  ClassChances of(const torch::Tensor& x) const { return at(network_.features(x)); }
  ClassChances at(const torch::Tensor& features) const { return from(shares_.of(features)); }
  // From the network's own, [N, C].
  ClassChances from(const torch::Tensor& shares) const;

 private:
  const ScoredNetwork& network_;
  const std::vector<VennAbers>& fitted_;
  LogitShares shares_;
};

}  // namespace fcp
