// A Score says how unusual a truth y is for a feature v, and which y lie within a radius.
//
//   score(v, y)    number          one per row
//   region(v, r)   intervals or labels: all y with score(v, y) ≤ r
//
// and every Score but `surrogate` and its kin obeys one law, tested for all of them in
// tests/methods/scores/law_test.cc:
//
//   y ∈ region(v, r)   ⟺   score(v, y) ≤ r
//
// Calibration needs nothing else. A score with two sides gives two numbers per row, one for each
// end of the interval, and takes two radii: y is in where both its scores are within their radii.
// One whose outputs each have a radius of their own (each_output.h) has the sides of all of them.
//
// Rows go in batches: N rows, D numbers a feature, K outputs, S sides, C classes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/bounds.h"
#include "fcp/conformal/bound_side.h"
#include "fcp/interval.h"
#include "fcp/level.h"
#include "fcp/nn/runtime/network.h"

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
  // Of one-sided bounds: which end is the bound. The other one is infinite, or that of the support.
  BoundSide side = BoundSide::kBoth;
  // Of ellipsoids (ellipsoid.h), around which lower and upper are a box: the factor L of each row,
  // [N, K, K], and its radius, [N, 1]. Undefined: the box is the region.
  torch::Tensor factor{};
  torch::Tensor radius{};
};

class Score {
 public:
  virtual ~Score() = default;

  virtual int64_t sides() const { return 1; }
  // How many outputs have a level of their own, which the sides of each share: sides() is a
  // multiple. 1: all outputs are promised together.
  virtual int64_t targets() const { return 1; }
  virtual int64_t classes() const { return 0; }  // of a score of labels; 0: intervals

  // features [N, …], truth [N, K] (labels: [N, 1], of pixels [N, P]) → N × S scores, row by row;
  // NaN where the network's answer or the truth is NaN.
  virtual std::vector<double> score(const torch::Tensor& features,
                                    const torch::Tensor& truth) const = 0;

  // features [N, …], radius [N, S] doubles → all y with score ≤ radius. +∞ gives all there are. A
  // score of labels takes [N, C] as well: a radius for each label.
  virtual Regions region(const torch::Tensor& features, const torch::Tensor& radius) const = 0;

  // The regions of several radii, for which the head runs once; in their order.
  virtual std::vector<Regions> regions(const torch::Tensor& features,
                                       std::span<const torch::Tensor> radii) const;

  // One radius for all rows and sides.
  Regions region(const torch::Tensor& features, double radius) const {
    return region(features, torch::full({features.size(0), sides()}, radius, torch::kDouble));
  }
};

// The options that every score has. Each score's own stand beside it (NestedOptions in nested.h,
// …); score_table.h puts both together.
struct SharedOptions {
  std::string output{};     // of the network; empty: its only one
  std::string rectifier{};  // the output that rectifies the score (rectified.h); empty: none
  // q: the share of an image's pixels that must be in (outputs.h), which is less than 1 of
  // residual, nested and lac alone. 0: the row is not an image; all of it must be in, and lac gives
  // one set per row instead of one per pixel.
  double pixels = 0;
  BoundSide side = BoundSide::kBoth;  // one_sided.h: an interval, or one bound at all of alpha
  std::string support{};              // support.h: "0:", "0:100"; empty: all numbers
  bool integer = false;               // the support is of whole numbers
  // Of labels: the softmax of the network, or calibrated beside the sets (distribution.h).
  std::string probabilities = "softmax";
  uint64_t targets = 0;  // each_output.h: outputs with a radius of their own; 0: one for all
  uint64_t seed = 0;     // of everything random

  bool operator==(const SharedOptions&) const = default;
};

struct Option;  // fcp/methods/option.h: options say here and there which rows of the table they add

// The length of the interval, or of all intervals of the union, of each row and output: [N, K].
// 0 where empty, +∞ where an end is infinite. Of a one-sided bound: how far it lies beyond the
// prediction, negative before it.
torch::Tensor region_lengths(const Regions& regions);

// The volume of each row's region, to the power 1/K: the side of a cube of that volume, [N].
torch::Tensor region_volumes(const Regions& regions);

// What each region costs beside its truth, [N, K]: its length, of a one-sided bound how far it lies
// beyond the truth, negative before it; with the distances below a proper score
// (fcp/evaluate/measures/interval_evaluation.h).
torch::Tensor region_costs(const Regions& regions, const torch::Tensor& truth);

// By which a distance is multiplied in the interval score: 2/α, of a one-sided bound 1/α.
double miss_penalty(const Level& level, BoundSide side);

// How far each truth [N, K] lies outside its region: 0 inside, of a union the distance to the
// nearest of its intervals, +∞ where that is empty. With it the interval score of Winkler is
// length + (2/α) · distance. [N, K].
torch::Tensor region_distances(const Regions& regions, const torch::Tensor& truth);

// Whether each row's truth [N, K] is in its region, in all outputs: [N] bool.
torch::Tensor in_regions(const Regions& regions, const torch::Tensor& truth);

// Regions of N × K unions, row by row, each of intervals that ascend; `lower` and `upper` are then
// the ends of the smallest interval around all of them.
Regions regions_of_unions(const torch::Tensor& prediction,
                          const std::vector<std::vector<Interval>>& unions);

// A score whose rows are shared among threads, each of which runs its rows by itself. Sharing every
// operation instead costs a meeting of all threads per operation: more than small heads compute,
// and on a busy machine many times as much. Scores and regions keep their bits, because those of a
// row do not depend on the rows beside it.
//
// On the CPU, from some dozens of rows on; otherwise the score runs as it is.
// Tested by tests/methods/scores/score_test.cc.

std::unique_ptr<Score> share_rows(std::unique_ptr<Score> score,
                                  const std::shared_ptr<const Network>& head);

}  // namespace fcp
