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

}  // namespace fcp
