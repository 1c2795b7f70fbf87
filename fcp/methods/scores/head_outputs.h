// Outputs that heads learned on frozen features add to a network: behind the feature tensor, beside
// the network's own outputs. Their names are reserved, so that a network with heads still has one
// answer, and scores that do not read them never pay for them.
//
//   fcp.spread      [N, K]      σ(v) > 0: how far the truth is from the prediction
//   fcp.quantiles   [N, K · Q]  of y − prediction, ascending for each output, at the levels
//                               1/(Q+1), …, Q/(Q+1)
//   fcp.cholesky    [N, K · K]  the lower triangular factor L of a covariance of y − prediction,
//                               row by row (ellipsoid.h)
//   fcp.rectifier   [N, S]      what rectified scores are divided by, or lowered by (rectified.h)
//   fcp.cross_low   [N, n]      ends of CV+ (cross.h)
//   fcp.cross_high  [N, n]
//   fcp.cross_margins  [N, n · C]  of CV+ for labels (cross.h)
//
// Tested by tests/methods/scores/spread_test.cc.
#pragma once

#include <string>

#include "fcp/methods/scores/score_table.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

inline constexpr char kSpreadOutput[] = "fcp.spread";
inline constexpr char kQuantilesOutput[] = "fcp.quantiles";
inline constexpr char kCholeskyOutput[] = "fcp.cholesky";
inline constexpr char kRectifierOutput[] = "fcp.rectifier";
inline constexpr char kCrossLowOutput[] = "fcp.cross_low";
inline constexpr char kCrossHighOutput[] = "fcp.cross_high";
inline constexpr char kCrossMarginsOutput[] = "fcp.cross_margins";

// Whether the name is one of the above.
bool is_head_output(const std::string& output);

bool has_output(const Graph& network, const std::string& output);

// The network without the head outputs that the score does not read, and where the options name
// outputs without all others, and without what only those need: cuts, bounds and gradients of
// other outputs do not matter. Where all outputs are read the network is given back as it is.
Graph graph_for_score(const Graph& network, const ScoreOptions& options);

// The network as it was before heads were added.
Graph without_heads(const Graph& network);

}  // namespace fcp
