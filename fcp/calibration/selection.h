// Choosing what calibration must not choose: the cut and the floor of a feature-space score. All of
// it looks only at rows that are then left out of the calibration, so the guarantee stays whole.
//
// Tested by tests/calibration/selection_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/conformal/level.h"
#include "fcp/network/graph.h"
#include "fcp/scores/score.h"

namespace fcp {

// What a choice minimises on the selection rows.
enum class Objective {
  kIntervalScore,  // length + (2/α) · distance of a miss: proper, so it cannot be bought by missing
  kLength,
};

// What a unit of distance between the truth and its region costs beside the length.
double miss_penalty(Objective objective, const Level& level);

// One way to cut and widen, judged on the selection rows: radius from one half of them, length and
// coverage on the other, both ways round.
struct Candidate {
  std::string cut;
  ScoreOptions score;
  double length = 0;  // mean over rows and outputs
  double loss = 0;    // by the objective
  double coverage = 0;
  std::string skipped;  // why it was not tried; empty: it was
};

struct Selection {
  std::vector<Candidate> candidates;  // in the order of the network, floors ascending
  size_t chosen = 0;                  // that with the least loss
};

struct SelectionOptions {
  Level level = Level(0.1);
  std::vector<std::string> cuts;  // empty: every valid cut, the input included
  std::vector<double> floors = {0, 0.25, 1};
  // Balls that reach as far in each direction as the rows' features spread, for the scores that
  // have a scale: shorter intervals than those of equal radii, at no cost.
  bool scaled = true;
  double seconds = 60;  // a candidate that would take longer is skipped
  Objective objective = Objective::kLength;
  torch::Device device = torch::kCPU;
  std::function<void(const Candidate&)> observe;  // called after each
};

// x [N, …], y [N, K]: the selection rows. An Error where no candidate gives a finite length; it
// says why each was skipped.
Selection select_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                     const torch::Tensor& y, const SelectionOptions& options);

// The slope s of a floor: by how much the mean width of the score's regions grows from radius 0 to
// the conformal quantile of the rows' own scores, divided by that radius. `score` has floor 0.
double measure_slope(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                     const Level& level);

// Up to `most` rows, spread evenly over all of them.
torch::Tensor spread_rows(const torch::Tensor& all, int64_t most);

// The deviation of each number of a feature over the rows, so that a ball reaches as far in each
// direction as the rows themselves spread. A number that never changes gets a thousandth of the
// mean deviation: no direction may be closed. Empty where nothing varies.
std::vector<double> feature_spread(const torch::Tensor& features);

// An Error where scoring all rows `times` times would take longer than `seconds`. One row tells
// first, for which a large network may take seconds; where it says too long, more rows do, because
// rows share what a walk costs whatever their number.
void check_time(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                double times, double seconds);

}  // namespace fcp
