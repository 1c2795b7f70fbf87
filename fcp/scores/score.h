// A Score says how strange a truth y is for a feature v, and which y are no stranger than a radius.
//
//   score(v, y)    number          one per row
//   region(v, r)   intervals or labels: all y with score(v, y) ≤ r
//
// and every Score but `surrogate` and its kin obeys one law, tested for all of them in
// tests/scores/law_test.cc:
//
//   y ∈ region(v, r)   ⟺   score(v, y) ≤ r
//
// Calibration needs nothing else. A score with two sides gives two numbers per row, one for each
// end of the interval, and takes two radii: y is in where both its scores are within their radii.
//
// Rows go in batches: N rows, D numbers a feature, K outputs, S sides, C classes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/ball.h"
#include "fcp/bounds/bounds.h"
#include "fcp/network/network.h"

namespace fcp {

// One interval for each row and output, in double precision; or one set of labels for each row.
struct Regions {
  torch::Tensor prediction;  // [N, K]; of labels [N, 1], the label the network would answer, −1
                             // where its answer is NaN
  torch::Tensor lower;       // [N, K], may be -∞; undefined for labels
  torch::Tensor upper;       // [N, K], may be +∞; undefined for labels
  torch::Tensor members;     // [N, C] bool: the labels in the set; undefined for intervals. Of
                             // pixels [N, C, P], and the prediction is then [N, P]
  // [N, K, P, 2]: the intervals of a union, ascending, then empty ones (+∞, −∞); lower and upper
  // are the ends of all of it. Undefined: the one interval from lower to upper.
  torch::Tensor parts{};
};

class Score {
 public:
  virtual ~Score() = default;

  virtual int64_t sides() const { return 1; }
  virtual int64_t classes() const { return 0; }  // of a score of labels; 0: intervals

  // features [N, …], truth [N, K] (labels: [N, 1], of pixels [N, P]) → N × S scores, row by row;
  // NaN where the network's answer or the truth is NaN.
  virtual std::vector<double> score(const torch::Tensor& features,
                                    const torch::Tensor& truth) const = 0;

  // features [N, …], radius [N, S] doubles → all y with score ≤ radius. +∞ gives all there are. A
  // score of labels takes [N, C] as well: a radius for each label.
  virtual Regions region(const torch::Tensor& features, const torch::Tensor& radius) const = 0;

  // One radius for all rows and sides.
  Regions region(const torch::Tensor& features, double radius) const {
    return region(features, torch::full({features.size(0), sides()}, radius, torch::kDouble));
  }
};

// Which score, and its options. Kept in the calibrated predictor. An option that a score does not
// name is not looked at by it.
struct ScoreOptions {
  std::string name = "nested";
  std::string output{};     // of the network; empty: its only one
  std::string normalize{};  // residual: the output that says the spread of y; empty: none
  std::string low{};        // cqr, feature_cqr: the output that is the low quantile;
  std::string high{};       // and the high one; both empty: the only two outputs
  bool asymmetric = false;  // cqr, feature_cqr: a radius for each side, each at α/2

  // Outputs of heads on the features; empty: the reserved names of head_outputs.h.
  std::string spread{};     // spread: σ
  std::string quantiles{};  // quantiles, density: the grid of quantiles of the residual
  double tail = 0.05;       // quantiles: the level of the low one; the high one's is 1 − tail
  bool level_set = false;   // density: unions of intervals
  std::string rectifier{};  // any: the output that rectifies the score (rectified.h); empty: none

  Norm norm = Norm::kInf;  // of feature space
  // nested, surrogate, feature_cqr. In plain arithmetic: nested needs bands that grow, which plain
  // ones do, not bands that hold every rounding, which would give the radius 0 a width.
  BoundOptions bound = {.outward = false};
  // nested, feature_cqr: how far each number of a feature moves at radius 1; empty: 1 for all.
  // density of level sets: the unit of each output; empty: 1 for all.
  std::vector<double> scale{};
  // q: residual, nested, lac: the share of an image's pixels that must be in (pixels.h). 0: the row
  // is not an image: all of it must be in, and lac gives one set per row instead of one per pixel.
  double pixels = 0;
  double floor = 0;  // c: nested, linearized, feature_cqr
  double slope = 0;  // s: the mean width of a band of radius 1; set where floor > 0

  int steps = 0;                       // M: surrogate, feature_cqr by the paper; 0: to be chosen
  double step_rate = 0.01;             // η: the same
  bool adam = false;                   // the same
  bool paper = false;                  // surrogate, feature_cqr: all the habits of the paper
  std::vector<double> loss_weights{};  // surrogate: see SearchOptions; empty: all 1

  // Of labels. feature_sampled takes steps, step_rate and adam as well; feature_margin the bound.
  double temperature = 1;   // lac, aps, raps: of the softmax
  bool double_log = false;  // lac of pixels: p = exp(−exp(output)) and no softmax
  bool randomized = true;   // aps, raps
  double rank_weight = 0;   // raps (its λ), feature_margin: what each rank beyond rank_free costs
  int64_t rank_free = 0;    // raps (its k_reg), feature_margin
  int64_t samples = 1000;   // feature_sampled: of the ball
  uint64_t seed = 0;        // aps, raps: of the random share; feature_sampled: of the samples
};

// Whether the score works in feature space, so that the cut matters.
bool uses_features(const std::string& score);

// Whether the score is one of labels.
bool predicts_labels(const std::string& score);

// The plain score beside which this one is shown: "residual" for nested, "cqr" for feature_cqr, …;
// empty for a plain one.
std::string baseline_of(const std::string& score);

// Whether the score searches a surrogate feature, so that it needs a number of steps.
bool searches_surrogate(const ScoreOptions& score);

// Whether region and score obey the law, so that the guarantee holds for the regions.
bool obeys_law(const ScoreOptions& score);

// The score over a head, the part of the network from the feature on. Throws an Error for a name
// that does not exist and for options that contradict the head.
std::unique_ptr<Score> make_score(const ScoreOptions& options, std::shared_ptr<const Network> head);

// The score of a network that its own training rows calibrate (cross.h; of labels
// cross_labels.h), and the name of that calibration. It is made with the network and cannot be
// asked of another one.
inline constexpr char kCrossScore[] = "cross";

// Names that make_score knows, but for those of cross-fitting.
std::vector<std::string> score_names();

}  // namespace fcp
