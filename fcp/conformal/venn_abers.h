// Calibrated probabilities of one class: the inductive Venn–Abers predictor.
//
// A score that rises with the probability, here that of the network, is turned into a pair: p0 is
// what isotonic regression on the calibration rows and the new row says of the new row if it is not
// of the class, p1 if it is. For exchangeable rows one of the two is calibrated, whatever the
// network is: with Y the truth, E(Y | p_Y) = p_Y, exactly. Which of the two is not known, and
// p1 − p0 says how little the calibration rows tell. Their merge, p1 / (1 − p0 + p1), is the
// probability whose logarithmic loss beside the better one of the two is least; it promises
// nothing of its own.
//
// Both are steps in the score: all that is kept of the calibration rows. p0 changes at a score, p1
// behind it.
//
// Cost: O(n log n) to fit, by two walks along the cumulative sums of the sorted rows in whole
// numbers; O(log n) for a row. Reference: Vovk, Petej, Fedorova, Large-scale probabilistic
// predictors with and without guarantees of validity, 2015, algorithms 1 to 4.
// Tested by tests/conformal/venn_abers_test.cc; against PyPI's venn-abers by
// tests/python/test_peers.py.
#pragma once

#include <span>
#include <vector>

namespace fcp {

struct VennAbersPair {
  double p0 = 0, p1 = 1;

  double merged() const { return p1 / (1 - p0 + p1); }
};

class VennAbers {
 public:
  // p0 for scores from `from` on, p1 for scores above it.
  struct Step {
    double from = 0;
    double p0 = 0, p1 = 0;

    bool operator==(const Step&) const = default;
  };

  // From the scores of rows, and of each whether it is of the class: at least one row. A score that
  // is NaN is an Error.
  VennAbers(std::span<const double> scores, const std::vector<bool>& of_class);

  // From steps() of another one; an Error where they are none.
  explicit VennAbers(std::vector<Step> steps);

  VennAbersPair at(double score) const;

  // Ascending, the first from −∞ on.
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

}  // namespace fcp
