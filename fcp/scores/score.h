// A Score says how strange a truth y is for a feature v, and which y are no stranger than a radius.
//
//   score(v, y)    number          one a row
//   region(v, r)   intervals       all y with score(v, y) ≤ r, one interval an output
//
// and every Score but `surrogate` obeys one law, tested for all of them in
// tests/scores/law_test.cc:
//
//   y ∈ region(v, r)   ⟺   score(v, y) ≤ r
//
// Calibration needs nothing else. Rows go in batches: N rows, D numbers a feature, K outputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/ball.h"
#include "fcp/bounds/bounds.h"
#include "fcp/network/network.h"

namespace fcp {

// One interval for each row and output, in double precision.
struct Regions {
  torch::Tensor prediction;  // [N, K]
  torch::Tensor lower;       // [N, K], may be -∞
  torch::Tensor upper;       // [N, K], may be +∞
};

class Score {
 public:
  virtual ~Score() = default;

  // features [N, …], truth [N, K] → N scores; NaN where the network's answer or the truth is NaN.
  virtual std::vector<double> score(const torch::Tensor& features,
                                    const torch::Tensor& truth) const = 0;

  // features [N, …] → all y with score ≤ radius. A radius of +∞ gives infinite intervals.
  virtual Regions region(const torch::Tensor& features, double radius) const = 0;
};

// Which score, and its options. Kept in the calibrated predictor. An option that a score does not
// name is not looked at by it.
struct ScoreOptions {
  std::string name = "nested";
  std::string output;     // of the network; empty: its only one
  std::string normalize;  // residual: the output that says the spread of y; empty: none

  Norm norm = Norm::kInf;  // of feature space: nested, surrogate, linearized
  // nested, surrogate. In plain arithmetic: nested needs bands that grow, which plain ones do, not
  // bands that hold every rounding, which would give the radius 0 a width.
  BoundOptions bound = {.outward = false};
  double floor = 0;  // c: nested, linearized
  double slope = 0;  // s: the mean width of a band of radius 1; set where floor > 0

  int steps = 0;                     // M: surrogate; 0: to be chosen
  double step_rate = 0.01;           // η: surrogate
  bool adam = false;                 // surrogate
  bool paper = false;                // surrogate: all the habits of the paper's own code
  std::vector<double> loss_weights;  // surrogate: one an output; empty: all 1
};

// Whether the score works in feature space, so that the cut matters.
bool uses_features(const std::string& score);

// Whether region and score obey the law, so that the guarantee holds for the intervals.
bool obeys_law(const std::string& score);

// The score over a head, the part of the network from the feature on. Throws an Error for a name
// that does not exist and for options that contradict the head.
std::unique_ptr<Score> make_score(const ScoreOptions& options, std::shared_ptr<const Network> head);

// Names that make_score knows.
std::vector<std::string> score_names();

}  // namespace fcp
