// An interval grown from the densest place of the learned distribution of the residual, always
// towards the denser side: the shortest single interval at each share of the distribution.
//
// The quantiles q_0 ≤ … ≤ q_{Q−1} of the residual (quantiles.h) leave Q − 1 gaps of equal
// mass, so a short gap is a dense one. The interval starts in the middle of the shortest gap (of
// equal ones, the most central), fills it, and then takes the shorter of the two gaps beside it,
// again and again; score(v, y) is how many gaps it had to take, with a share of the last, until it
// reached μ + residual = y. Beyond the outermost quantile the distribution goes on in pieces
// j = 0, 1, …, 23 of length s 4^j and mass 2^−(j+1) of a gap, s being the outermost gap (at least
// 1/64 of the mean one). A piece is taken as a gap of equal density would be, and counts by its
// mass, but never less than 1/16. After the last piece of both sides, 1e14 s away, the interval is
// everything.
//
// Equal quantiles are gaps of length 0: taken first, and passed without moving. All ends are
// monotone in the radius as computed, and the score is the least radius that holds y: the law is
// exact. Several outputs: the largest score. Cost: one forward and O(Q) per row and output.
//
// With the option `level_set` the region is the level set of the density instead (below).
//
// Reference: CHR (Sesia and Romano, 2021), which grows an interval over histogram bins of y.
// Tested by tests/methods/scores/law_test.cc, coverage_test.cc and density_test.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fcp/interval.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

inline constexpr int kTailPieces = 24;  // on each side
// Of piece j, in units of s: its length, the length of a gap of the same density, and what taking
// it counts.
double tail_length(int piece);
double tail_gap(int piece);
double tail_count(int piece);
// s, from the outermost gap and all of them.
double tail_scale(double outermost, std::span<const double> quantiles);

// How the interval of one row and output grows.
class GrownInterval {
 public:
  GrownInterval(double center, std::span<const double> quantiles);

  bool valid() const { return valid_; }
  Interval at(double radius) const;
  double guess(double y) const;

 private:
  struct Side;
  void take(const Side& left, const Side& right);

  double center_;
  bool valid_;
  std::vector<double> count_;          // gaps taken after each step, ascending from 0
  std::vector<double> lower_, upper_;  // of the residual, after each step
};

struct DensityOptions {
  static constexpr char kName[] = "density";

  std::string quantiles{};      // the output that is the grid of quantiles; empty: the reserved one
  bool level_set = false;       // unions of intervals
  std::vector<double> units{};  // of level sets: the unit of each output; empty: 1 for all

  static std::vector<Option> rows();
  std::vector<std::string> learned_outputs() const;
  bool operator==(const DensityOptions&) const = default;
};

std::unique_ptr<Score> make_score(const DensityOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// `density` with --union: all y where the learned density of the residual is high enough, possibly
// several intervals for a row (Regions::parts).
//
//   score(v, y) = the length of the shortest gap between neighbouring quantiles that holds y, over
//                 unit_k; at the distance x beyond the outermost quantile s (1 + x/s)², with s as
//                 above
//
// Gaps have equal mass, so this is one over the density, up to a factor: one threshold for all rows
// gives the least mean length if the learned density is right. Gaps that touch are one interval.
// Several outputs are compared in the units of DensityOptions. The score is the least radius whose
// union holds y: the law is exact. Cost: O(Q) per row. Reference: CTI, conformal thresholded
// intervals (Luo and Zhou, 2024); here of the residual. Tested by tests/methods/scores/law_test.cc,
// coverage_test.cc and density_test.cc.

// The intervals of one row and output, ascending and apart from each other.
std::vector<Interval> density_level_set(double center, std::span<const double> quantiles,
                                        double longest_gap);

}  // namespace fcp
