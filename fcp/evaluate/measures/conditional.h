// How far coverage is from being the same everywhere. What conformal prediction promises is
// coverage over all rows; these say what it is where it is least, and how predictable misses are.
//
//   worst slab    of all slabs {x : a ≤ uᵀx ≤ b} along random directions u that hold at least a
//                 share δ of the rows, the one of least coverage. Found on one half of the rows and
//                 measured on the other, both ways round: the least of many is too low where it was
//                 found. Cauchois, Gupta, Duchi, Knowing what You Know, JMLR 2021; the
//                 cross-validated form is of Romano, Sesia, Candès, NeurIPS 2020.
//   excess risk   (ERT) how much better misses are predicted by x than by the level alone:
//                 mean of (Z − (1 − α))² − (Z − p(x))², Z = 1 where covered, p a regression of Z
//                 that did not see the row. It estimates E (P(covered | x) − (1 − α))², less what p
//                 fails to see; 0 for conditional coverage, a little below 0 by chance. Braun,
//                 Holzmüller, Jordan, Bach, Conditional Coverage Diagnostics, 2025. p is a
//                 regression tree (depth 3, leaves of at least a twentieth of the rows, means drawn
//                 towards 1 − α by 20 rows), cross-fitted five times.
//   gap           how far coverage is from 1 − α in parts of the rows.
//   correlation   of length and miss, Pearson's: 0 where long intervals miss as often as short
//                 ones. Feldman, Bates, Romano, Orthogonal Quantile Regression, NeurIPS 2021.
//   stability     of several refits on the same rows: how much of two intervals they share
//                 (Jaccard's index, intersection over union), the mean over pairs and rows.
//
// N rows of D columns, row by row. Coverage by predicted length is coverage_by_size (coverage.h).
// Tested by tests/evaluate/measures/conditional_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fcp/evaluate/measures/coverage.h"
#include "fcp/level.h"

namespace fcp {

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
// Tested by tests/evaluate/measures/conditional_test.cc and tests/cli/test_covmetrics.py.

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

// Mean 0 and deviation 1 in each column; 0 where a column does not vary or a number is missing. An
// Error where x is not a table of as many rows as `covered`.
std::vector<double> standardised_columns(std::span<const double> x, size_t columns,
                                         std::span<const uint8_t> covered);

struct WorstSlabOptions {
  size_t directions = 1000;
  double share = 0.1;  // δ
  uint64_t seed = 0;
  double confidence = 0.95;
};

// The coverage of both measured slabs together. x is standardised column by column; NaN counts as
// the mean. None where there are fewer than 2/δ rows, or where the slabs found on one half hold no
// row of the other. Cost: directions · N log N.
std::optional<Coverage> worst_slab(std::span<const double> x, size_t columns,
                                   std::span<const uint8_t> covered,
                                   const WorstSlabOptions& options = {});

// Of zeros and ones, the stretch [begin, end) of at least `least` numbers that has the smallest
// mean.
struct Stretch {
  size_t begin = 0, end = 0;
  double mean = 0;
};
Stretch least_mean_stretch(std::span<const uint8_t> z, size_t least);

struct ExcessRisk {
  double value = 0;           // the mean above
  double standard_error = 0;  // over rows
};

// None for fewer than 50 rows. Cost: D · N log N for each level of the trees.
std::optional<ExcessRisk> excess_risk(std::span<const double> x, size_t columns,
                                      std::span<const uint8_t> covered, const Level& level,
                                      uint64_t seed = 0);

// 0 where one of them does not vary; infinite lengths are left out.
double length_miss_correlation(std::span<const double> lengths, std::span<const uint8_t> covered);

// All of it for one predictor, on rows that are all of the test rows or a sample of them. A figure
// that these rows do not determine is absent.
struct ConditionalCoverage {
  size_t rows = 0;
  std::optional<Coverage> worst_slab{};
  std::optional<ExcessRisk> excess_risk{};
  std::optional<CoverageGap> gap{};
  double correlation = 0;             // of length, or size, and miss
  size_t refits = 0;                  // with which the intervals were compared,
  std::optional<double> stability{};  // if there were any
};

// One refit: the ends of N intervals.
struct RefitIntervals {
  std::span<const double> lower, upper;
};

// At least two refits of as many intervals. Two empty intervals, or two that are everything, share
// all; an infinite one and a finite one share nothing.
double interval_stability(std::span<const RefitIntervals> refits);

// The regression p of the excess risk: greedy splits of one column at a time that lower the squared
// error of `covered` most, three levels deep. A leaf answers its mean, drawn towards `prior`.
// Breiman, Friedman, Olshen, Stone, Classification and Regression Trees, 1984.
class CoverageTree {
 public:
  // x: all rows of so many columns; `rows`: those that are fitted.
  CoverageTree(std::span<const double> x, size_t columns, std::span<const uint8_t> covered,
               const std::vector<size_t>& rows, double prior);

  double predict(std::span<const double> row) const;

 private:
  struct Branch {
    int column = -1;       // −1: a leaf
    double threshold = 0;  // x ≤ threshold goes left; NaN goes right
    double value = 0;
    int left = 0, right = 0;
  };

  int grow(std::span<const double> x, size_t columns, std::span<const uint8_t> covered,
           std::vector<size_t> rows, int depth);

  double prior_;
  size_t least_;  // rows of a leaf
  std::vector<Branch> branches_;
};

}  // namespace fcp
