#include "fcp/calibration/feature_heads.h"

#include <algorithm>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/network/cut.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/outputs.h"
#include "fcp/scores/rectified.h"

namespace fcp {
namespace {

// The features at the cut and the answers of one output, for all rows.
struct Observed {
  std::string feature;  // tensor
  std::string output;
  torch::Tensor features;    // [N, …]
  torch::Tensor prediction;  // [N, K]
};

Observed observe(const Graph& network, const std::string& cut, const std::string& output,
                 const torch::Tensor& x, torch::Device device) {
  ScoreOptions plain;
  plain.name = "residual";
  plain.output = output;
  const ScoredNetwork scored(without_heads(network), plain, cut, device);
  const Network& head = *scored.shared_head();
  const size_t index = output_index(head, output);
  Observed seen;
  seen.feature = scored.cut().empty() ? network.inputs[0].name : scored.cut();
  seen.output = head.outputs()[index].name;
  seen.features = scored.features(x);
  seen.prediction = output_matrix(head.run_rows({seen.features})[index]);
  return seen;
}

// The output that the rectifier reads beside the features: of two quantiles, the low one.
std::string described_output(const Graph& network, const ScoreOptions& score) {
  if (score.name != "cqr" && score.name != "feature_cqr") return score.output;
  return score.low.empty() ? without_heads(network).outputs[0].name : score.low;
}

}  // namespace

Graph with_heads(const Graph& network, const std::string& cut, const std::string& output,
                 const torch::Tensor& x, const torch::Tensor& y, const HeadOptions& options,
                 torch::Device device) {
  const torch::NoGradGuard no_gradients;
  const Observed seen = observe(network, cut, output, x, device);
  const torch::Tensor residual = truth_matrix(y, seen.prediction) - seen.prediction;
  const FeatureHeads heads = fit_heads({{seen.features, seen.prediction, residual}}, options);
  Graph graph = network;
  append_heads(graph, seen.feature, seen.output, heads, {kSpreadOutput, kQuantilesOutput});
  return graph;
}

Graph with_target_scales(const Graph& network, const std::string& output, const torch::Tensor& x,
                         const torch::Tensor& y, torch::Device device) {
  constexpr double kSameUnit = 2;
  const torch::NoGradGuard no_gradients;
  const Observed seen = observe(network, "", output, x, device);
  const auto info = std::find_if(network.outputs.begin(), network.outputs.end(),
                                 [&](const TensorInfo& each) { return each.name == seen.output; });
  const bool matrix = info->known_rank && info->shape.size() == 2;
  if (!matrix || seen.prediction.size(1) < 2) return network;
  const torch::Tensor truth = truth_matrix(y, seen.prediction);
  torch::Tensor scale = (truth - seen.prediction).abs().mean(0);  // [K]
  // A target that is predicted exactly has no error to measure it by; its size serves.
  scale = torch::where(scale > 0, scale, truth.abs().mean(0));
  scale = torch::where(scale > 0, scale, torch::ones_like(scale)).cpu();
  const bool finite = torch::isfinite(scale).all().item<bool>();
  if (!finite || (scale.max() <= kSameUnit * scale.min()).item<bool>()) return network;
  Graph graph = network;
  const std::string name = kScaleOutput;
  graph.initializers[name + "/targets"] = scale.unsqueeze(0).to(info->type);
  Node shape, expand;
  shape.op = "Shape";
  shape.name = name + "/shape";
  shape.inputs = {seen.output};
  shape.outputs = {shape.name};
  expand.op = "Expand";
  expand.name = name;
  expand.inputs = {name + "/targets", shape.name};
  expand.outputs = {name};
  graph.nodes.insert(graph.nodes.end(), {shape, expand});
  TensorInfo added = *info;
  added.name = name;
  graph.outputs.push_back(added);
  return graph;
}

Graph with_rectifier(const Graph& network, const std::string& cut, ScoreOptions& score,
                     const torch::Tensor& x, const torch::Tensor& y, double alpha,
                     const HeadOptions& options, torch::Device device) {
  const torch::NoGradGuard no_gradients;
  ScoreOptions plain = score;
  plain.rectifier.clear();
  const ScoredNetwork scored(network, plain, cut, device);
  const std::vector<double> scores = scored.score().score(scored.features(x), y);
  const int64_t sides = scored.score().sides();
  const Observed seen = observe(network, cut, described_output(network, score), x, device);
  const torch::Tensor target = torch::tensor(scores, torch::kDouble).reshape({x.size(0), sides});
  const double quantile = 1 - alpha / static_cast<double>(sides);
  HeadOptions own = options;
  own.missing = scored.cut().empty();  // what a network reads may be missing, what it computes not
  const Rectifier rectifier = fit_rectifier({seen.features, seen.prediction, target}, quantile,
                                            rectified_by_difference(score.name), own);
  Graph graph = network;
  append_rectifier(graph, seen.feature, seen.output, rectifier, kRectifierOutput);
  score.rectifier = kRectifierOutput;
  return graph;
}

}  // namespace fcp
