// The cut and floor of nested or linearized for a contest of scores, where select_cut would take
// too long: from coarse to fine, and by region ladders instead of exact scores.
//
// Every cut and floor is judged by the objective on 300 rows; the three best cuts on 1,000; the
// best of these is measured on all. linearized, which costs little, is judged on 1,000 at once.
// Radius from one half of the rows, loss on the other, both ways round, as select_cut does it.
//
// Cost: about 10 regions for each cut and row that is looked at; select_cut makes 130.
// Tested by tests/calibration/region_ladder_test.cc.
#pragma once

#include <string>

#include "fcp/calibration/region_ladder.h"
#include "fcp/calibration/selection.h"

namespace fcp {

struct QuickCut {
  std::string cut;
  ScoreOptions score;
  RegionLadder ladder;  // of all rows, at the cut

  double widening() const { return score.floor * score.slope / 2; }
};

// x [N, …], y [N, K]: the selection rows; the score must have ladders. Of the options `observe` is
// not used. An Error where no cut gives a finite length; it says why each was skipped.
QuickCut find_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                  const torch::Tensor& y, const SelectionOptions& options);

}  // namespace fcp
