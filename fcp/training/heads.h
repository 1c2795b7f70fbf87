// Heads on frozen features: what a network's features say about its errors.
//
//   spread     σ(v) [K]       the 85 % quantile of |residual|, by pinball loss of its log, plus a
//                             floor of a tenth of its mean over the fitted rows
//   quantiles  q(v) [K · Q]   of the residual at 1/(Q+1), …, Q/(Q+1): quantiles of residual / σ(v)
//                             by pinball loss, times σ(v); rising by construction (a median, and
//                             softplus steps away from it on both sides)
//   factors    L(v) [K · K]   the Cholesky factor of a covariance of the residual: that of
//                             residual / σ(v) (loss.h), times σ(v)
//   rectifier  ρ(v) [S]       the 1 − α quantile of a score (fcp/methods/scores/rectified.h): of
//   its log
//                             where the score is divided, of itself where it is lowered
//
// All are perceptrons with one hidden layer (perceptrons.h) over the standardised feature and the
// prediction. A residual teaches something only where the network did not see the row: members of a
// cross-fitted ensemble each bring the rows that they were not trained on, with their features, and
// their answers are averaged. A single network, whatever made it, is one member.
//
// The members' features lie side by side in one tensor of the graph: member e has the columns
// [e D, (e + 1) D). Where D exceeds HeadOptions::most_columns, each member keeps the columns of the
// largest variance; the graph gathers them.
//
// append_heads writes them into the graph behind the feature tensor in standard operators (operator
// set 9 and later), so that cutting at the feature still separates the graph and nothing but the
// graph is needed to run them. Cost of fitting: about 4 s on one core for 20,000 rows of
// 512 features.
// Tested by tests/training/heads_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"
#include "fcp/training/perceptrons.h"

namespace fcp {

// Rows that one member did not see.
struct HeadMember {
  torch::Tensor features;         // [n, …]
  torch::Tensor prediction;       // [n, K], the member's own
  torch::Tensor residual;         // [n, K]: y − prediction; of a rectifier [n, S]: the scores
  std::vector<int64_t> groups{};  // [n]: see PerceptronRows, as of
  torch::Tensor weight{};         // [n]
};

struct HeadOptions {
  int64_t quantiles = 49;         // Q, odd
  int64_t most_columns = 2048;    // of each member
  bool factors = false;           // learns them as well
  bool missing = false;           // rectifier: numbers of a feature may be missing (NaN)
  std::vector<int64_t> groups{};  // of the rows, where a caller makes the one member of them
  PerceptronFit fit{};
};

struct FeatureHeads {
  torch::Tensor columns;  // [E · D'] long: the columns that are read; undefined: all
  Perceptrons spread;
  torch::Tensor spread_scale, spread_shift;  // [E, 1, K]: log σ = shift + scale · output,
  torch::Tensor spread_least, spread_most;   // [E, 1, K]: within these
  torch::Tensor spread_floor;                // [1, 1, K]
  Perceptrons quantiles;                     // of residual / σ
  torch::Tensor step_floor;                  // [1]: the least step between quantiles, in σ
  Perceptrons factors;                       // of residual / σ; without tensors where not learned
  torch::Tensor factor_start;                // [K · K]

  // features [N, …] as the graph's tensor has them, prediction [N, K].
  torch::Tensor spread_of(const torch::Tensor& features, const torch::Tensor& prediction) const;
  torch::Tensor quantiles_of(const torch::Tensor& features, const torch::Tensor& prediction) const;
  torch::Tensor factors_of(const torch::Tensor& features, const torch::Tensor& prediction) const;
};

FeatureHeads fit_heads(const std::vector<HeadMember>& members, const HeadOptions& options = {});

struct Rectifier {
  torch::Tensor columns;
  torch::Tensor fill;  // [1, D']: what missing numbers are read as; undefined: none is missing
  Perceptrons network;
  torch::Tensor scale, shift, least, most;  // [1, 1, S]
  bool difference = false;                  // of the score itself; otherwise of its log

  torch::Tensor answer(const torch::Tensor& features, const torch::Tensor& prediction) const;
};

// `member.residual` holds scores, none of them NaN; infinite ones count as the largest finite one.
// `quantile` is 1 − α.
Rectifier fit_rectifier(const HeadMember& member, double quantile, bool difference,
                        const HeadOptions& options = {});

// Names of the outputs that are added: fcp/methods/scores/outputs.h reserves fcp.spread,
// fcp.quantiles, fcp.cholesky and fcp.rectifier. An empty one is not added, nor factors that were
// not learned.
struct HeadNames {
  std::string spread = "fcp.spread";
  std::string quantiles = "fcp.quantiles";
  std::string factors = "fcp.cholesky";
};

// Adds the heads behind the tensor `feature` and the output `prediction`. Outputs of these names
// that exist already are replaced. An Error where the graph has no such tensors.
void append_heads(Graph& graph, const std::string& feature, const std::string& prediction,
                  const FeatureHeads& heads, const HeadNames& names = {});
void append_rectifier(Graph& graph, const std::string& feature, const std::string& prediction,
                      const Rectifier& rectifier, const std::string& name = "fcp.rectifier");

}  // namespace fcp
