// How far coverage is from 1 − α over a partition of the rows by their columns: k-means on
// standardised columns into one part for every 50 rows, at most 50.
//
//   squared error   Σ_k (n_k / N) (c_k − (1 − α))²: the mean squared conditional error as CPCP
//                   measures it (Chen and Li, Colorful Pinball, ICML 2026, arXiv 2512.24139).
//                   Chance alone makes it about α(1 − α) K/N, which is told beside it.
//   gap             Σ_k (n_k / N) |c_k − (1 − α)|: the weighted coverage gap of the package
//                   covmetrics (Braun, Holzmüller, Jordan, Bach, 2025)
//
// c_k is the share of covered rows of part k. Cost: N K D for each of at most 20 rounds.
// Tested by tests/evaluate/measures/coverage_gap_test.cc and tests/cli/test_covmetrics.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fcp/level.h"

namespace fcp {

struct CoveragePart {
  size_t rows = 0, covered = 0;
};

struct CoverageGap {
  std::vector<CoveragePart> parts{};  // none is empty
  double squared_error = 0;
  double by_chance = 0;  // of the squared error
  double gap = 0;
};

// x: N rows of so many columns; a number that is missing counts as the mean of its column. None for
// fewer than 100 rows.
std::optional<CoverageGap> coverage_gap(std::span<const double> x, size_t columns,
                                        std::span<const uint8_t> covered, const Level& level,
                                        uint64_t seed = 0);

CoverageGap gap_of_parts(std::vector<CoveragePart> parts, const Level& level);

// The part of each row, from 0, by k-means: the first centres are drawn with chances in proportion
// to the squared distance to those before (Arthur and Vassilvitskii, 2007).
std::vector<size_t> k_means(std::span<const double> x, size_t columns, size_t parts, uint64_t seed);

}  // namespace fcp
