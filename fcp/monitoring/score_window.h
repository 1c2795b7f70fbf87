// The scores that a radius is taken from when calibration moves with time: the last W of them,
// which are calibration scores (as many as fit, chosen by the seed) until truths have replaced
// them. Tested by tests/monitoring/adaptive_level_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "fcp/monitoring/ranked_scores.h"

namespace fcp {

class ScoreWindow {
 public:
  // rows ≥ 1; calibration scores in any order.
  ScoreWindow(std::vector<double> calibration, size_t rows, uint64_t seed);

  // (1 + #{s_i ≥ s}) / (n + 1), as fcp/conformal/p_value.h has it.
  double p_value(double score) const;

  // The largest score whose p-value is above the level: the conformal quantile. +∞ where the level
  // asks for more than the window has, −∞ where it is 1 or more.
  double radius(double level) const;

  void add(double score);
  size_t size() const { return order_.size(); }

 private:
  RankedScores ranked_;
  std::deque<double> order_;  // the oldest first
  size_t rows_;
};

}  // namespace fcp
