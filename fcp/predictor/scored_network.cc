#include "fcp/predictor/scored_network.h"

#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {

ScoredNetwork::ScoredNetwork(const Graph& network, const ScoreOptions& score,
                             const std::string& cut, torch::Device device) {
  if (network.inputs.size() != 1) {
    fail("the network has ", network.inputs.size(), " inputs; calibration needs one");
  }
  NetworkOptions options;
  options.device = device;
  const Graph graph = graph_for_score(network, score);
  if (cut.empty()) {
    head_ = std::make_shared<Network>(graph, options);
  } else {
    CutGraph parts = fcp::cut(graph, cut);
    cut_ = parts.feature;
    backbone_.emplace(std::move(parts.backbone), options);
    layers_ = match_relu_layers(*backbone_);
    head_ = std::make_shared<Network>(std::move(parts.head), options);
  }
  score_ = make_score(score, head_);
}

torch::Tensor ScoredNetwork::features(const torch::Tensor& x) const {
  torch::NoGradGuard no_grad;
  if (layers_ && takes_rows(*layers_, x)) return run_layers(*layers_, x);
  return backbone_ ? run_apart(*backbone_, {x})[0] : x;
}

std::vector<int64_t> ScoredNetwork::predicted_labels(const std::string& output,
                                                     const torch::Tensor& features) const {
  const torch::Tensor answer =
      output_matrix(run_apart(*head_, {features})[output_index(*head_, output)]);
  const torch::Tensor numbers =
      answer.size(1) > 1 ? answer : logits_of(logit_head(head_, output), features);
  const torch::Tensor labels = numbers.argmax(1).to(torch::kCPU).contiguous();
  return {labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel()};
}

torch::Tensor ratio_input(const torch::Tensor& x, const torch::Tensor& features) {
  return x.dim() == 2 ? x : features;
}

}  // namespace fcp
