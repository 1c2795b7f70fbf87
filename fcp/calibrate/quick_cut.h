// The cut and floor of nested or linearized for a contest of scores, where select_cut would take
// too long: from coarse to fine, and by region ladders instead of exact scores.
//
// Every cut and floor is judged by the objective on 300 rows; the three best cuts on 1,000; the
// best of these is measured on all. linearized, which costs little, is judged on 1,000 at once.
// Radius from one half of the rows, loss on the other, both ways round, as select_cut does it.
//
// A region ladder has lengths and misses of a score at any radius and any floor, read from its
// regions at a few radii. The regions of all rows are made once at 0 = R_0 < R_1 < … Between two
// rungs, and beyond the last, ends are taken as linear in the radius. A floor widens each end by
// w r, so that one ladder serves every floor:
//
//   excess_g = how far y is outside of its region at R_g, less w R_g       (≤ 0: inside)
//   score    = where the excess, linear between rungs, reaches 0
//
// Assumes regions that grow with the radius from the prediction on, and that a floor widens by w r:
// nested with a bound whose bands are nested, and linearized, which is linear itself, so that one
// rung makes it exact. Rungs in steps of √2 put the length of nested within 1 % of the exact one.
//
// Cost: a region per rung for each row, beside the scores of 32 rows that place the rungs: about 10
// for each cut and row that is looked at, where select_cut makes 130.
// Tested by tests/calibrate/quick_cut_test.cc.
#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibrate/choose_cut.h"
#include "fcp/calibrate/halves.h"
#include "fcp/level.h"
#include "fcp/methods/method.h"

namespace fcp {

// Whether a ladder can stand for the score: see above.
bool has_ladder(const ScoreOptions& score);

class RegionLadder {
 public:
  // `sharp` is the score with floor 0, of the options `score`. Rungs lie around the radius at
  // `level`. An Error where no row has a finite score, and where some are not numbers.
  RegionLadder(const Score& sharp, const ScoreOptions& score, const torch::Tensor& features,
               const torch::Tensor& truth, const Level& level);

  // By how much the mean width grows with the radius up to the radius at the level: the slope s of
  // a floor, as measure_slope gives it; 0 where that radius is infinite.
  double slope(const Level& level) const;

  // The estimated score of each row where each end moves by `widening` times the radius besides.
  std::vector<double> scores(double widening) const;

  // The mean over these rows and all outputs of the length at a radius.
  double mean_length(double radius, double widening, const std::vector<size_t>& rows) const;

  // The mean over these rows and all outputs of the distance between truth and region at a radius.
  double mean_distance(double radius, double widening, const std::vector<size_t>& rows) const;

  size_t rows() const { return rows_; }

 private:
  // A radius between two rungs, or beyond the last: the upper one and the share of the way to it.
  struct Step {
    size_t rung;
    double share;
  };
  Step step_to(double radius) const;
  double excess(size_t rung, size_t row) const;  // the largest over outputs

  size_t rows_ = 0;
  size_t outputs_ = 1;
  std::vector<double> radii_;   // of the rungs, from 0 on
  std::vector<double> excess_;  // [rungs, N, K]
  std::vector<double> width_;   // [rungs, N]: mean over outputs
};

// As the ladder estimates it, where each end moves by `widening` times the radius besides.
HalfMeasures measure_halves(const RegionLadder& ladder, double widening, const Level& level,
                            const std::vector<Halving>& halvings);

struct QuickCut {
  std::string cut;
  ScoreOptions score;
  RegionLadder ladder;  // of all rows, at the cut

  double widening() const { return score.value(field::floor) * score.value(field::slope) / 2; }
};

// x [N, …], y [N, K]: the selection rows; the score must have ladders. Of the options `observe` is
// not used. An Error where no cut gives a finite length; it says why each was skipped.
QuickCut find_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                  const torch::Tensor& y, const SelectionOptions& options);

}  // namespace fcp
