// What a choice is judged by: lengths, or sizes of sets, and misses at equal coverage. The radius
// comes from one half of the rows, the measures from the other, both ways round.
//
// The distance of a missed label from its set is the number of labels that the set would have to
// gain until it holds the truth: the rank of the truth by the row's scores, less the size of the
// set. With it size + (1/α) · distance is the interval score of an upper bound of that rank. It is
// proper: the 1 − α quantile of the rank given the row has the least, so that sets which are small
// where rows are easy and large where they are hard are not beaten by sets that miss the hard ones.
//
// Tested by tests/calibrate/choose_cut_test.cc and fit_heads_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "fcp/level.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

// What a choice minimises on the selection rows.
enum class Objective {
  kIntervalScore,  // length + (2/α) · distance of a miss, or of sets of labels size + (1/α) ·
                   // distance: proper, so it cannot be bought by missing
  kLength,
  kVolume,  // of all outputs together (region_volumes)
};

// Row numbers of both halves.
using Halving = std::array<std::vector<size_t>, 2>;

struct HalfMeasures {
  // One for each half of each halving; of one-sided bounds how far they lie beyond the truth.
  std::vector<double> lengths;
  std::vector<double> distances;  // of the truth from its interval or set, the mean
  std::vector<double> volumes;    // of all outputs together; none for sets
  double coverage = 0;
  double radius = 0;  // the mean
  BoundSide side = BoundSide::kBoth;

  double length() const;
  double interval_score(const Level& level) const;
  std::vector<double> losses(Objective objective, const Level& level) const;  // of each half
};

double mean_of(const std::vector<double>& values);

HalfMeasures measure_halves(const Score& score, const torch::Tensor& features,
                            const torch::Tensor& truth, const Level& level,
                            const std::vector<Halving>& halvings);

}  // namespace fcp
