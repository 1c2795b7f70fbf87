// The regions of `quantiles` and `density` (fcp/scores) as nodes of a graph, in double precision:
// gaps between quantiles decide which is taken first, and must come out as fcp itself sees them.
//
//   quantiles   a product with the constants that interpolate between neighbouring quantiles
//   density     the order in which gaps are taken, without a loop. On each side of the first gap, a
//               gap is as late as the longest one between it and the first, A_k. A gap j of one
//               side is taken before a gap k of the other exactly where A_j < A_k (the lower side
//               also where A_j = A_k): at the earliest the interval can pass the longest of them.
//               So the gaps before k are counted by a comparison of all pairs, and the share of k
//               that is taken is clip((r − count before k) / count of k, 0, 1).
//
// With quantiles that may be off by δ, a gap is off by 2δ. What may be taken is then taken: a gap j
// counts as before k only where A_j < A_k in any case, and where another gap may be the shortest
// one, all gaps from the lowest to the highest of these are the start.
//
// Tail pieces are written as far as the radius can reach: piece j is longer than all gaps together
// from 2^(3j+1) > 64 (Q − 1) on, hence taken after all of them. Cost of density: (Q + 9)² numbers
// per row and output for a radius within the gaps; (Q + 47)² where the radius is rectified.
// Tested by tests/export/export_test.cc.
#pragma once

#include <string>

#include "fcp/export/graph_builder.h"
#include "fcp/export/ranges.h"

namespace fcp {

// A grid of quantiles of the residual in the graph, [N, K · Q].
struct QuantileGrid {
  std::string name;
  int64_t outputs = 1;    // K
  int64_t quantiles = 2;  // Q
  // δ [N, 1, 1] or [1] doubles: how far the other runtime's quantiles may be off; empty: not at
  // all.
  std::string rounding{};
};

// A radius: a number, and a tensor [N, 1] of doubles that is added or multiplies it; empty: none.
struct NodeRadius {
  double value = 0;
  std::string rectifier{};
  bool difference = false;
};

// Ends of the residual, [N, K] doubles.
Ends write_quantile_pair(GraphBuilder& builder, const QuantileGrid& grid, double tail,
                         const NodeRadius& radius);
// The radius from which a grown interval of so many quantiles is everything.
double grown_limit(int64_t quantiles);
Ends write_grown_interval(GraphBuilder& builder, const QuantileGrid& grid,
                          const NodeRadius& radius);

}  // namespace fcp
