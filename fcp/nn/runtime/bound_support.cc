#include "fcp/nn/runtime/bound_support.h"

#include "fcp/nn/graph/carry.h"
#include "fcp/nn/graph/lower_attention.h"

namespace fcp {

std::vector<BoundPlan> plan_bounds(const Network& network) {
  std::vector<bool> constant;
  for (const torch::Tensor& value : network.constants()) constant.push_back(value.defined());
  std::vector<BoundPlan> plans;
  for (const Step& step : network.steps()) {
    std::vector<bool> inputs;
    BoundPlan plan;
    plan.runs = true;
    for (const int slot : step.inputs) {
      inputs.push_back(slot < 0 || constant[static_cast<size_t>(slot)]);
      plan.runs = plan.runs && inputs.back();
    }
    plan.runs = plan.runs || takes_carried(step.node);
    plan.rule = plan.runs ? BoundRule::kShape : step.op->bound_rule(inputs);
    plan.support = plan.runs ? BoundSupport::kLinear : step.op->bounds(inputs);
    plan.runs = plan.rule == BoundRule::kShape;
    for (const int slot : step.outputs) {
      if (slot >= 0) constant[static_cast<size_t>(slot)] = plan.runs;
    }
    plans.push_back(plan);
  }
  return plans;
}

std::vector<BoundSupport> bound_support(const Network& network) {
  std::vector<BoundSupport> result;
  for (const BoundPlan& plan : plan_bounds(network)) result.push_back(plan.support);
  for (size_t i = 0; i < result.size(); ++i) {
    const Node& node = network.steps()[i].node;
    const bool apart = result[i] == BoundSupport::kNone && node.op == "Attention" &&
                       can_lower(node, network.graph().initializers);
    if (apart) result[i] = BoundSupport::kLinear;  // of its parts
  }
  return result;
}

const char* support_name(BoundSupport support) {
  if (support == BoundSupport::kLinear) return "linear";
  return support == BoundSupport::kInterval ? "interval" : "none";
}

}  // namespace fcp
