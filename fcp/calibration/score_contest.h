// The contest by which select_score and select_label_score choose: how candidates are measured on
// halves of the rows, and which one wins. score_selection.h says why.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "fcp/calibration/region_ladder.h"
#include "fcp/calibration/score_selection.h"

namespace fcp {

// Lengths, or sizes of sets, at the radius of the other half.
struct HalfMeasures {
  std::vector<double> lengths;    // one for each half of each halving
  std::vector<double> distances;  // of the truth from its interval, the mean; 0 for sets
  double coverage = 0;
  double radius = 0;  // the mean
};

// Row numbers of both halves.
using Halving = std::array<std::vector<size_t>, 2>;

// Exactly, by scores and regions.
HalfMeasures measure_halves(const Score& score, const torch::Tensor& features,
                            const torch::Tensor& truth, const Level& level,
                            const std::vector<Halving>& halvings);

// As a region ladder estimates it.
HalfMeasures measure_halves(const RegionLadder& ladder, double widening, const Level& level,
                            const std::vector<Halving>& halvings);

class ScoreContest {
 public:
  ScoreContest(int64_t rows, const ScoreSelectionOptions& options);

  const std::vector<Halving>& halvings() const { return halvings_; }

  // `measure` settles cut and options of the candidate and measures it; what it throws is why the
  // candidate is skipped.
  void enter(const ScoreOptions& score,
             const std::function<HalfMeasures(ScoreCandidate&)>& measure);

  // Once, at the end. An Error where no candidate has a finite loss.
  ScoreSelection choose();

 private:
  std::vector<double> compared_losses() const;
  [[noreturn]] void fail_selection() const;

  int64_t rows_;
  const ScoreSelectionOptions& options_;
  std::vector<Halving> halvings_;
  ScoreSelection selection_;
  std::vector<std::vector<double>> losses_;  // of each candidate, one for each half
};

}  // namespace fcp
