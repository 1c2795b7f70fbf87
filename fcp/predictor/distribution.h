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

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/interval.h"
#include "fcp/level.h"
#include "fcp/methods/scores/support.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/predictor_core.h"

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

}  // namespace fcp
