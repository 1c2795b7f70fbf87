// Heads for a network from elsewhere: fitted on rows of its training distribution that it has not
// seen (a share of the calibration rows, then left out of the calibration, or a set of their own),
// and written into its graph. Members of an ensemble that fcp trains bring their own rows instead:
// fcp/training/heads.h.
// Tested by tests/calibrate/fit_heads_test.cc.
#pragma once

#include <string>

#include <torch/types.h>

#include "fcp/methods/method.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/training/heads.h"

namespace fcp {

// The network with a spread, quantiles and (options.factors) a covariance of its residual, learned
// on the features at `cut` (cut.h). x [N, …], y [N, K]; `output`: the prediction; empty: the only.
Graph with_heads(const Graph& network, const std::string& cut, const std::string& output,
                 const torch::Tensor& x, const torch::Tensor& y, const HeadOptions& options = {},
                 torch::Device device = torch::kCPU);

// The network with a rectifier of the score, learned on the features at `cut` (empty: the network's
// input) for the level α, and `score` told to use it. The rows must not be calibrated on.
Graph with_rectifier(const Graph& network, const std::string& cut, ScoreOptions& score,
                     const torch::Tensor& x, const torch::Tensor& y, double alpha,
                     const HeadOptions& options = {}, torch::Device device = torch::kCPU);

// The network with the output fcp.scale [N, K], the same for every row: the mean error of each
// target on these rows, so that `residual` normalised by it gives each target a radius in its own
// unit. Unchanged where the errors of all targets are within a factor of 2, where there is one
// target, and where the answer is not a matrix: its numbers then share a unit.
inline constexpr char kScaleOutput[] = "fcp.scale";
Graph with_target_scales(const Graph& network, const std::string& output, const torch::Tensor& x,
                         const torch::Tensor& y, torch::Device device = torch::kCPU);

}  // namespace fcp
