#include "fcp/nn/runtime/fuse.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/runtime/fuse_chain.h"
#include "fcp/nn/runtime/fused_op.h"

namespace fcp {
Step fused_step(const std::vector<Step>& steps, const FusedChain& chain) {
  Step whole;
  whole.node = steps[chain.steps[0]].node;
  whole.node.outputs = steps[chain.steps.back()].node.outputs;
  whole.inputs = steps[chain.steps[0]].inputs;
  whole.outputs = steps[chain.steps.back()].outputs;
  std::map<int, int> made;  // slot to the part that makes it
  std::vector<FusedOp::Part> parts;
  const auto input_of = [&](int slot) {
    const auto found = std::find(whole.inputs.begin(), whole.inputs.end(), slot);
    const auto at = static_cast<int>(found - whole.inputs.begin());
    if (found == whole.inputs.end()) whole.inputs.push_back(slot);
    return at;
  };
  for (const size_t i : chain.steps) {
    FusedOp::Part part;
    part.node = steps[i].node;
    part.op = steps[i].op;
    for (size_t j = 0; j < steps[i].inputs.size(); ++j) {
      const int slot = steps[i].inputs[j];
      const auto inner = made.find(slot);
      if (slot < 0)
        part.sources.emplace_back();
      else if (parts.empty())
        part.sources.push_back({static_cast<int>(j), false});
      else if (inner != made.end())
        part.sources.push_back({inner->second, true});
      else
        part.sources.push_back({input_of(slot), false});
    }
    made[steps[i].outputs[0]] = static_cast<int>(parts.size());
    parts.push_back(std::move(part));
  }
  FusedOp::Ends ends;
  ends.activation = chain.activation;
  if (chain.bias >= 0) ends.bias = input_of(chain.bias);
  if (chain.added >= 0) ends.added = input_of(chain.added);
  ends.joins = chain.joins;
  whole.op = std::make_shared<FusedOp>(std::move(parts), ends);
  return whole;
}

std::vector<Step> fuse_steps(const std::vector<Step>& steps, const Tensors& constants,
                             const std::vector<int>& outputs) {
  std::map<size_t, FusedChain> chains;  // by their last step
  std::set<size_t> inner;
  for (FusedChain& chain : find_chains(steps, constants, outputs)) {
    inner.insert(chain.steps.begin(), chain.steps.end());
    chains.emplace(chain.steps.back(), std::move(chain));
  }
  std::vector<Step> fused;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto chain = chains.find(i);
    if (chain == chains.end() && inner.contains(i)) continue;
    fused.push_back(chain == chains.end() ? steps[i] : fused_step(steps, chain->second));
    fused.back().last_read.clear();
    fused.back().any_layout = has_traits(fused.back().node, kAnyLayout);
  }
  return fused;
}

}  // namespace fcp
