// Choosing the score: the one whose intervals, or sets of labels, have the least interval score on
// rows that are then left out of the calibration. Of sets it is the size plus 1/α times the labels
// that a missed truth is away (halves.h).
//
// The interval score (Winkler 1972; Gneiting, Raftery 2007, section 6.2) is the mean of
// length + (2/α) · distance of the truth from its interval. It is proper: the true quantiles have
// the least. Mean length is not, because it can be bought by missing badly where rows are hard, so
// it is the objective only on request.
//
// Each candidate is measured at equal coverage: four times the rows are halved at random, the
// radius at the level comes from one half and the mean loss from the other, both ways round; its
// loss is the mean of the eight. The noise of a comparison is the deviation of the eight
// differences to the best candidate, over √2 (two halves make one measurement on all rows).
// Chosen is the simplest candidate that is worse than the best by no more than the noise and by no
// more than 2 % of the loss: scores differ in what can go wrong later, not only in loss.
// Of such candidates those that can be exported come first; where none of them can, the simplest
// that can and loses no more than 2 %. aps, raps and saps take part without their random share,
// with which no export has their sets.
//
// nested and linearized are the best of many cuts and floors on these rows, so they look better
// than they are: the noise of their difference to the best other score is added to theirs.
//
// From simple to elaborate: residual, cqr, spread, quantiles, density, linearized, nested, and by
// volume ellipsoid; of label scores lac, raps, saps, aps, feature_margin. nested and linearized
// come with the cut and floor that quick_cut.h finds (for bounds whose bands are not nested:
// select_cut, on 1,000 rows) and are measured by its region ladder; scores over heads
// (outputs.h) take part where the network has the heads.
//
// Cost: at most 4,000 rows are looked at. Scores that need no cut are measured behind the last one,
// so that the backbone runs once for each: eight regions of half the rows.
// Tested by tests/calibrate/fit_heads_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibrate/choices.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/level.h"
#include "fcp/methods/method.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// With what the settings of its calibration would be.
struct ScoreCandidate : ScoreTried {
  ScoreOptions score{};
  double radius = 0;   // at the level, the mean over the halves
  bool tuned = false;  // its cut and floor were chosen on the rows that measure it
};

struct ScoreSelection {
  std::vector<ScoreCandidate> candidates;  // from simple to elaborate
  size_t chosen = 0;

  const ScoreCandidate& best() const { return candidates[chosen]; }
};

struct ScoreSelectionOptions {
  Level level = Level(0.1);
  std::vector<std::string> scores{};   // empty: all of the lists above that the network allows
  std::vector<std::string> without{};  // left out of these lists
  std::string cut{};                   // empty: chosen for each score that has one
  std::vector<double> floors = {0, 0.25, 1};
  Objective objective = Objective::kIntervalScore;
  double work = kMostWork;  // for all cuts of nested or linearized together (selection.h)
  uint64_t seed = 0;        // of the halves
  std::vector<int64_t>
      groups{};                 // of the rows: those of one are in one half; empty: each is its own
  std::string target_scales{};  // the output with the unit of each target, for residual
  std::string no_heads{};       // why scores over heads cannot take part; empty: not worth telling
  // Whether a candidate can be exported; empty: all can.
  std::function<bool(const ScoreCandidate&)> exportable{};
  torch::Device device = torch::kCPU;
  std::function<void(const ScoreCandidate&)> observe{};  // called after each
};

// x [N, …], y [N, K]: the selection rows. `score` holds what all candidates share (output, low and
// high, norm, bound, rectifier). An Error where no candidate gives finite intervals; it says why
// each was skipped.
ScoreSelection select_score(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                            const torch::Tensor& y, const ScoreSelectionOptions& options);

// The same for labels y [N, 1]: temperature and rank terms are chosen on the same rows.
ScoreSelection select_label_score(const Graph& network, const ScoreOptions& score,
                                  const torch::Tensor& x, const torch::Tensor& y,
                                  const ScoreSelectionOptions& options);

}  // namespace fcp
