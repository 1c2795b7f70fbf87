#include "fcp/calibrate/default_cut.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/head_outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/output_kind.h"
#include "fcp/nn/graph/simplify.h"
#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/zero_inputs.h"

namespace fcp {
namespace {

// The tensor for so many rows; undefined where the file fixes another number of them, or does not
// tell all shapes.
torch::Tensor example_feature(const Graph& backbone, int64_t rows) {
  const Tensors inputs = zero_inputs(backbone, rows);
  if (inputs.empty()) return {};
  const torch::NoGradGuard no_gradients;
  return Network(backbone).run(inputs)[0];
}

// The numbers of one row of the tensor; nothing where the file does not tell all shapes.
std::optional<int64_t> feature_numbers(const Graph& graph, const std::string& tensor) {
  const Graph backbone = cut(graph, tensor).backbone;
  const int64_t fixed = Network(backbone).fixed_batch();
  const torch::Tensor feature = example_feature(backbone, fixed == kDynamic ? 1 : fixed);
  if (!feature.defined()) return std::nullopt;
  return feature.dim() == 0 ? 1 : feature.numel() / std::max<int64_t>(1, feature.size(0));
}

// A tensor whose first axis is that of the rows, as far as shapes tell: recurrent networks have
// others. Where the graph cannot be cut, neither can it be used.
bool can_be_feature(const Graph& graph, const std::string& tensor, size_t layers) {
  try {
    const CutGraph parts = cut(graph, tensor);
    if (count_layers(parts.head) < layers) return false;
    for (const int64_t rows : {1, 2}) {  // one of them alone may be the length of another axis
      const torch::Tensor feature = example_feature(parts.backbone, rows);
      if (feature.defined() && (feature.dim() == 0 || feature.size(0) != rows)) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Whether every node of the head is affine, so that the differences of its outputs are too.
bool is_affine(const Graph& head) {
  const Network network(head);
  return std::all_of(network.steps().begin(), network.steps().end(), [&](const Step& step) {
    std::vector<bool> constant;
    for (const int slot : step.inputs) {
      constant.push_back(slot < 0 || network.constants()[static_cast<size_t>(slot)].defined());
    }
    const BoundRule rule = step.op->bound_rule(constant);
    return rule == BoundRule::kAffine || rule == BoundRule::kShape;
  });
}

// The cut after which the network is affine, where it is not behind `usual`: SqueezeNet has a ReLU
// behind its last layer, and only averages after it. Otherwise, and for outputs that are
// probabilities, `usual`.
std::string before_affine_end(const Graph& graph, const std::vector<std::string>& cuts,
                              const std::string& usual) {
  if (output_meaning(graph, graph.outputs[0].name).kind != OutputKind::kPlain) return usual;
  for (auto tensor = std::find(cuts.begin(), cuts.end(), usual); tensor != cuts.end(); ++tensor) {
    if (can_be_feature(graph, *tensor, 0) && is_affine(cut(graph, *tensor).head)) return *tensor;
  }
  return usual;
}

bool needs_bounds(const ScoreOptions& score) {
  const bool searched_pair = score.find(field::low) != nullptr && score.value(field::paper);
  return score.find(field::bound) != nullptr && !searched_pair;
}

// A node of the head that has no bounds; nothing where all have.
std::optional<std::string> unbounded_node(const Graph& head) {
  const Network network(head);
  const std::vector<BoundSupport> support = bound_support(network);
  for (size_t i = 0; i < support.size(); ++i) {
    if (support[i] == BoundSupport::kNone) return describe(network.steps()[i].node);
  }
  return std::nullopt;
}

// The last of the cuts that leaves so many layers to a head with bounds, or the earliest that
// leaves at least one; and the first node that has none, looking back from the output.
struct BoundedCut {
  std::string cut;
  std::string obstacle;
};
BoundedCut last_bounded_cut(const Graph& graph, const std::vector<std::string>& cuts,
                            size_t layers) {
  BoundedCut found;
  for (auto tensor = cuts.rbegin(); tensor != cuts.rend(); ++tensor) {
    if (!can_be_feature(graph, *tensor, 0)) continue;
    const Graph head = cut(graph, *tensor).head;
    if (const std::optional<std::string> node = unbounded_node(head)) {
      found.obstacle = *node;
      return found;
    }
    const size_t count = count_layers(head);
    if (count < std::min<size_t>(layers, 1)) continue;
    found.cut = *tensor;
    if (count >= layers) return found;
  }
  return found;
}

}  // namespace

CutChoice default_cut(const Graph& network, const ScoreOptions& score) {
  Graph folded = graph_for_score(without_heads(network), score);
  fold_constants(folded);
  const std::vector<std::string> cuts = feature_cuts(folded);
  const auto last_with = [&](size_t layers) -> std::string {
    for (auto tensor = cuts.rbegin(); tensor != cuts.rend(); ++tensor) {
      if (can_be_feature(folded, *tensor, layers)) return *tensor;
    }
    if (layers > 1) return "";
    fail("the network has no tensor at which it can be cut; residual and lac need none");
  };
  const bool by_margin = score.traits().labels && !score.searches();
  const size_t wanted = std::min<size_t>(by_margin ? 1 : 2, count_layers(folded));
  std::string usual = last_with(wanted);
  if (usual.empty()) usual = last_with(1);
  if (needs_bounds(score) && unbounded_node(cut(folded, usual).head)) {
    const BoundedCut bounded = last_bounded_cut(folded, cuts, wanted);
    if (bounded.cut.empty() && !bounded.obstacle.empty()) {
      fail(score.name(),
           " needs a cut behind which all nodes have bounds, and this network has none: ",
           bounded.obstacle, " has no bounds; use ",
           score.traits().labels ? "lac" : "residual or linearized");
    }
    if (!bounded.cut.empty()) {
      return {bounded.cut, concat("cut: taking '", bounded.cut, "'; before it, at '", usual, "', ",
                                  bounded.obstacle, " has no bounds")};
    }
  }
  if (by_margin) return {before_affine_end(folded, cuts, usual)};
  if (wanted < 2) return {usual};
  const std::optional<int64_t> numbers = feature_numbers(folded, usual);
  if (!numbers || *numbers <= kLargestFeature) return {usual};
  const std::string later = last_with(1);
  const std::optional<int64_t> fewer = feature_numbers(folded, later);
  if (!fewer || *fewer >= *numbers) return {usual};
  return {later,
          concat("cut: taking '", later, "' with ", *fewer,
                 " numbers per row, before the last layer; the feature before the last two, '",
                 usual, "', has ", *numbers)};
}

}  // namespace fcp
