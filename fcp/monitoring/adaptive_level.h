// A level that follows the truths as they come, for rows that are not exchangeable.
//
// With p_t the p-value of the truth, the region at level a covers it exactly where p_t > a.
//
//   aci     a_{t+1} = a_t + γ (α − 1{p_t ≤ a_t}).  Whatever happens,
//           |mean of misses over T rows − α| ≤ (max(α, 1 − α) + γ) / (γ T).
//   dtaci   a weighted mean of eight such levels of different γ, weighted by how small their
//           pinball loss α (p_t − a) − min(0, p_t − a) has been of late; needs no step size. Its
//           regret over every stretch of I = 500 rows is bounded, and with it the distance of its
//           coverage from 1 − α in the long run; it promises nothing row by row.
//
// A level at or below 0 asks for everything, one at or above 1 for nothing.
//
// References: Gibbs, Candès, Adaptive Conformal Inference Under Distribution Shift, 2021; Conformal
// Inference for Online Prediction with Arbitrary Distribution Shifts, 2024 (DtACI).
// O(1) per row. Tested by tests/monitoring/adaptive_level_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fcp/level.h"

namespace fcp {

struct AdaptOptions {
  std::string method = "dtaci";  // aci, dtaci, or none: the level stays
  double step = 0.005;           // aci: γ
};

// "dtaci", or "aci 0.005".
std::string adapting_text(const AdaptOptions& options);

class AdaptiveLevel {
 public:
  AdaptiveLevel(const Level& target, const AdaptOptions& options);

  // The level of the next row, to 12 decimals.
  double level() const;
  // The p-value of that row's truth.
  void see(double p_value);

  // All that the levels to come depend on, and back. An Error where it is not the state of these
  // options.
  std::vector<double> state() const;
  void restore(const std::vector<double>& state);

 private:
  void reweigh(double p_value);

  double target_;
  std::vector<double> steps_, levels_, weights_;  // one per expert
  std::deque<double> losses_;                     // mean squared ones of the last I rows
  double loss_sum_ = 0;
};

// Scores in order, to which scores come and from which they go: how many lie below a number, and
// which is the k-th. Sorted blocks of at most 1,024: O(n / 512 + log n) for each operation, which
// for a million scores is a few microseconds. Two neighbours hold more than 512 together, so that
// memory is at most 32 bytes per score and a block, whatever comes and goes; usually it is 11.
// Tested by tests/monitoring/adaptive_level_test.cc.

class RankedScores {
 public:
  RankedScores() = default;
  // In any order; ±∞ are legal, a NaN is an Error.
  explicit RankedScores(std::vector<double> scores);

  void insert(double score);
  // One score equal to this; an Error where there is none.
  void erase(double score);

  size_t size() const { return size_; }
  size_t count_below(double score) const;    // #{s < score}
  size_t count_at_most(double score) const;  // #{s ≤ score}
  double kth(size_t k) const;                // from 0, k < size()
  std::vector<double> sorted() const;
  size_t blocks() const { return blocks_.size(); }

 private:
  size_t block_of(double score) const;  // the first whose last score is not below it
  void split(size_t at);
  void join_with_next(size_t at);  // where both are small

  std::vector<std::vector<double>> blocks_;  // none is empty
  size_t size_ = 0;
};

// The scores that a radius is taken from when calibration moves with time: the last W of them,
// which are calibration scores (as many as fit, chosen by the seed) until truths have replaced
// them. Tested by tests/monitoring/adaptive_level_test.cc.

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
