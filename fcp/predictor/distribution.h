// The conformal predictive distribution of each row: a distribution of y that is calibrated for any
// network, read from the sorted scores of one end (one_sided.h).
//
// With n scores s_i and the score s(t) of a threshold t, which rises with t,
//
//   #{s_i < s(t)} / (n + 1)  ≤  F(t)  ≤  (#{s_i ≤ s(t)} + 1) / (n + 1)
//
// and F at the truth, anywhere between at random, is uniform: exactly, for exchangeable rows. So a
// probability is a band, 1/(n + 1) wide where no two scores are equal, and no single number. Its
// quantile at p is the upper bound at α = 1 − p. The same holds in each group of grouped
// calibration, and for weighted calibration with shares of weight in place of counts.
//
// A lower bound's score falls with t and gives the same distribution; of two ends with a radius
// each, the upper one's scores are taken. A support is kept to.
//
// Cost: one forward, and two searches among the scores for each threshold.
// Reference: Vovk, Shen, Manokhin, Xie, Nonparametric predictive distributions based on conformal
// prediction, 2019; Vovk, Petej, Nouretdinov, Manokhin, Gammerman, Computationally efficient
// versions of conformal predictive distributions, 2020 (split conformal predictive systems).
// Tested by tests/predictor/distribution_test.cc; against crepes by tests/python/test_peers.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/conformal/venn_abers.h"
#include "fcp/interval.h"
#include "fcp/level.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/support.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/predictor_core.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {

// What keeps a predictor from having a distribution; nothing where it has one.
std::optional<std::string> no_distribution(const CalibrationArtifact& artifact);

// A probability at least `lower` and at most `upper`.
using ProbabilityBand = Interval;

// The event from < y ≤ to.
struct Event {
  double from = -kInfinity;
  double to = kInfinity;
};

// As the program and Python name it: above 30, below 30, between 10:30. An OptionError where the
// numbers are none, or not in order.
Event event_above(const std::string& text);
Event event_below(const std::string& text);
Event event_between(const std::string& text);

// The levels 1/(count + 1), …, count/(count + 1).
std::vector<Level> even_levels(uint64_t count);

class PredictiveDistribution {
 public:
  // An Error where there is none.
  explicit PredictiveDistribution(const CalibrationArtifact& artifact,
                                  torch::Device device = torch::kCPU);

  TestInputs describe(const torch::Tensor& x, const SideInformation& known = {}) const {
    return predictor_.describe(x, known);
  }

  // Of each row, [N, P] doubles on the host, at probabilities in (0, 1). +∞ (or the end of the
  // support) beyond n / (n + 1). An Error where the network answers several outputs.
  torch::Tensor quantiles(const TestInputs& rows, std::span<const Level> probabilities) const;

  // Of each row the probability of the event.
  std::vector<ProbabilityBand> probability(const TestInputs& rows, const Event& event) const;
  // With a threshold for each row: F there, and 1 − F.
  std::vector<ProbabilityBand> below(const TestInputs& rows,
                                     std::span<const double> thresholds) const;
  std::vector<ProbabilityBand> above(const TestInputs& rows,
                                     std::span<const double> thresholds) const;

 private:
  // F at the threshold, and the share of the new row itself.
  struct Place {
    ProbabilityBand band;
    double own = 0;
  };
  std::vector<Place> places(const TestInputs& rows, std::span<const double> thresholds) const;

  BoundSide side_;
  Support support_;
  internal::PredictorCore predictor_;  // without the support
};

// The probabilities of the classes of a row: those of the network, and those that Venn–Abers
// prediction makes of them (fcp/conformal/venn_abers.h) where the predictor was calibrated so.
//
// Each class stands against the rest: the score of a row is the network's probability of the class,
// and its label is whether it is of the class. Of two classes the second one alone is fitted; the
// first has one minus its numbers. Of more the merged probabilities, which need not add up to 1,
// are divided by their sum. The promise is that of each pair (p0, p1); merging and dividing promise
// nothing.
//
// Tested by tests/predictor/distribution_test.cc.

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
