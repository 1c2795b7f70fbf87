// Choosing what calibration must not choose: the cut and the floor of a feature-space score. All of
// it looks only at rows that are then left out of the calibration, so the guarantee stays whole.
//
// Tested by tests/calibrate/choose_cut_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibrate/choices.h"
#include "fcp/calibrate/halves.h"
#include "fcp/level.h"
#include "fcp/methods/method.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {

// One way to cut and widen, judged on the selection rows: radius from one half of them, length and
// coverage on the other, both ways round.
struct Candidate : CutCandidate {
  ScoreOptions score{};
  double loss = 0;  // by the objective
};

struct Selection {
  std::vector<Candidate> candidates;  // in the order of the network, floors ascending
  size_t chosen = 0;                  // that with the least loss

  const Candidate& best() const { return candidates[chosen]; }
};

// What a choice may cost: about a minute of one processor.
inline constexpr double kMostWork = 3e11;

struct SelectionOptions {
  Level level = Level(0.1);
  std::vector<std::string> cuts;  // empty: every valid cut, the input included
  std::vector<double> floors = {0, 0.25, 1};
  // Balls that reach as far in each direction as the rows' features spread, for the scores that
  // have a scale: shorter intervals than those of equal radii, at no cost.
  bool scaled = true;
  double work = kMostWork;  // operations for all cuts together: CutWork; the others are skipped
  bool cheapest = true;     // the cut of the least work is tried however much that is
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

// Puts the floor into the options, and the slope where there is a floor.
void widen(ScoreOptions& score, double floor, double slope);

// Why cuts were passed over: each reason once, with the cuts that it holds for.
class SkippedCuts {
 public:
  void add(const std::string& cut, const std::string& why);
  std::string text() const;  // "; CUT: REASON", …; empty: none was

 private:
  struct Reason {
    std::string why;
    std::string first;
    size_t cuts = 0;
  };
  std::vector<Reason> reasons_;
};

// The features of the rows x at the cut, which the score is to work on. An Error where they are
// whole numbers, or where the tensor's first axis is not that of the rows, or has no other.
torch::Tensor checked_features(const ScoredNetwork& network, const torch::Tensor& x);

// Up to `most` rows, spread evenly over all of them.
torch::Tensor spread_rows(const torch::Tensor& all, int64_t most);

// The deviation of each number of a feature over the rows, so that a ball reaches as far in each
// direction as the rows themselves spread. A number that never changes gets a thousandth of the
// mean deviation: no direction may be closed. Empty where nothing varies.
std::vector<double> feature_spread(const torch::Tensor& features);

// About how many operations a score takes behind each cut of a network, from the operations and
// sizes of its nodes at one row: a count, not a time, so that the same candidates are tried on
// every machine.
//
//   forward     the flops of all nodes, and kNumberWork for each number that they make
//   linearized  one forward and, for each output, one walk back of kBackwards forwards
//   nested, …   three forwards for each region by ibp; linear bounds walk back from every number
//               that they bound as well
//   nodes       kNodeWork for each node of each walk, however few numbers it makes
class CutWork {
 public:
  // `graph` is that of the score; `x` [N, …], whose first row is run. Where that fails nothing is
  // known, and all work is 0.
  CutWork(const Graph& graph, const ScoreOptions& score, const torch::Tensor& x);

  // Of `regions` regions for each of `rows` rows behind the cut, and one run before it.
  double of(const std::string& cut, int64_t rows, double regions) const;

 private:
  struct Work {
    double operations = 0, nodes = 0, numbers = 0;
  };
  std::map<std::string, Work> behind_;  // by tensor
  Work all_;
  double outputs_ = 0;
  bool linearized_ = false, linear_bounds_ = false;
};

// Why a candidate of so much work is skipped.
std::string too_much_work(double work, double most);

// The cuts that can be tried within the work of the options, in the order of the network; why not
// goes to `skip` for each of the others. `regions`: of each row and cut.
std::vector<std::string> affordable_cuts(
    const CutWork& work, const std::vector<std::string>& cuts, int64_t rows, double regions,
    const SelectionOptions& options,
    const std::function<void(const std::string& cut, const std::string& why)>& skip);

// Where a network is cut when nobody says where: by the shape of its graph alone, no row is seen.
// Tested by tests/calibrate/choose_cut_test.cc.

// The cut where none is asked for. For scores of labels but feature_sampled the last valid one that
// leaves a layer to the head, which is then one linear layer as a rule; where more than that is
// behind it, the first one with nothing but affine nodes behind it. Otherwise the last one that
// leaves two, or one where the feature would have more than kLargestFeature numbers per row. The
// feature's first axis is that of the rows.
inline constexpr int64_t kLargestFeature = 4096;
struct CutChoice {
  std::string cut;
  std::string note{};  // what was taken instead of what usually is; empty: nothing
};
CutChoice default_cut(const Graph& network, const ScoreOptions& score);

}  // namespace fcp
