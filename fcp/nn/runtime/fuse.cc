#include "fcp/nn/runtime/fuse.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/runtime/tensor_memory.h"

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

torch::Tensor FusedOp::at_once(const Tensors& inputs) const {
  Epilogue epilogue;
  epilogue.activation = ends_.activation;
  if (ends_.bias >= 0) epilogue.bias = inputs[static_cast<size_t>(ends_.bias)];
  if (ends_.added >= 0) epilogue.added = inputs[static_cast<size_t>(ends_.added)];
  const auto own = static_cast<ptrdiff_t>(parts_[0].sources.size());
  Tensors first(inputs.begin(), inputs.begin() + own);
  if (!ends_.joins) return parts_[0].op->forward_with_epilogue(first, epilogue);
  for (const Source& source : parts_[1].sources) {
    if (!source.inner) first.push_back(inputs[static_cast<size_t>(source.index)]);
  }
  return parts_[1].op->forward_with_epilogue(first, epilogue);
}

Tensors FusedOp::forward(const Tensors& inputs) const {
  const torch::Tensor whole = at_once(inputs);
  if (whole.defined()) return {whole};
  const TensorMemory memory(0);  // a sum may be far larger than what is added
  Tensors results;
  for (const Part& part : parts_) {
    Tensors arguments;
    for (const Source& source : part.sources) {
      const auto at = static_cast<size_t>(source.index);
      if (source.index < 0)
        arguments.emplace_back();
      else
        arguments.push_back(source.inner ? results[at] : inputs[at]);
    }
    memory.before(part.node, arguments);
    results.push_back(part.op->forward(arguments)[0]);
  }
  return {results.back()};
}

namespace {

bool is_plain_op(const Step& step, const char* op) {
  return step.node.op == op && (step.node.domain.empty() || step.node.domain == "ai.onnx");
}

float number_attribute(const Node& node, const char* name, float fallback) {
  const auto found = node.attributes.find(name);
  const auto* value = found == node.attributes.end() ? nullptr : std::get_if<float>(&found->second);
  return value == nullptr ? fallback : *value;
}

class ChainFinder {
 public:
  ChainFinder(const std::vector<Step>& steps, const Tensors& constants,
              const std::vector<int>& outputs)
      : steps_(steps), constants_(constants), outputs_(outputs.begin(), outputs.end()) {
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const int slot : std::set<int>(steps[i].inputs.begin(), steps[i].inputs.end())) {
        readers_[slot].push_back(i);
      }
    }
  }

  // The chain that begins with step i; empty where it cannot be the first.
  FusedChain find(size_t i) {
    FusedChain chain;
    if (taken_.contains(i)) return chain;
    const int next = joins_channels(steps_[i]) ? only_reader(i) : -1;
    chain.joins = next >= 0 && normalizes(steps_[static_cast<size_t>(next)]);
    if (!chain.joins && !leads(steps_[i])) return chain;
    chain.steps = {i};
    if (chain.joins) chain.steps.push_back(static_cast<size_t>(next));
    while (chain.activation.kind == ActivationKind::kNone &&
           (takes_one(chain) || takes_gelu(chain))) {
    }
    taken_.insert(chain.steps.begin(), chain.steps.end());
    return chain;
  }

 private:
  const torch::Tensor& constant(int slot) const {
    static const torch::Tensor none;
    return slot < 0 ? none : constants_[static_cast<size_t>(slot)];
  }

  // A constant of one float32.
  std::optional<float> scalar(int slot) const {
    const torch::Tensor& value = constant(slot);
    if (!value.defined() || value.numel() != 1 || value.scalar_type() != torch::kFloat) return {};
    return value.item<float>();
  }

  static bool joins_channels(const Step& step) {
    const auto found = step.node.attributes.find("axis");
    if (!is_plain_op(step, "Concat") || found == step.node.attributes.end()) return false;
    const auto* axis = std::get_if<int64_t>(&found->second);
    return axis != nullptr && *axis == 1;
  }

  // By constant statistics.
  bool normalizes(const Step& step) const {
    return is_plain_op(step, "BatchNormalization") && step.outputs.size() == 1 &&
           !constant(step.inputs[0]).defined() &&
           std::all_of(step.inputs.begin() + 1, step.inputs.end(),
                       [&](int slot) { return constant(slot).defined(); });
  }

  bool leads(const Step& step) const {
    if (normalizes(step)) return true;
    const bool conv = is_plain_op(step, "Conv"), gemm = is_plain_op(step, "Gemm");
    if (!conv && !gemm && !is_plain_op(step, "MatMul")) return false;
    const bool fixed = constant(step.inputs[1]).defined() && !constant(step.inputs[0]).defined();
    const bool bias =
        step.inputs.size() < 3 || step.inputs[2] < 0 || constant(step.inputs[2]).defined();
    return fixed && bias && (conv || constant(step.inputs[1]).dim() == 2);
  }

  // The one step that reads what the step makes and may be taken along, or -1.
  int only_reader(size_t step) const {
    const int slot = steps_[step].outputs[0];
    const auto found = readers_.find(slot);
    const bool one = found != readers_.end() && found->second.size() == 1;
    if (!one || outputs_.contains(slot) || taken_.contains(found->second[0])) return -1;
    return static_cast<int>(found->second[0]);
  }

  bool takes_one(FusedChain& chain) const {
    const int next = only_reader(chain.steps.back());
    if (next < 0) return false;
    const Step& step = steps_[static_cast<size_t>(next)];
    const int slot = steps_[chain.steps.back()].outputs[0];
    const std::optional<FusedActivation> activation = activation_of(step, slot);
    if (activation) {
      chain.activation = *activation;
    } else if (!takes_sum(chain, step, slot)) {
      return false;
    }
    chain.steps.push_back(static_cast<size_t>(next));
    return true;
  }

  bool takes_sum(FusedChain& chain, const Step& step, int slot) const {
    if (!is_plain_op(step, "Add") || step.inputs[0] == step.inputs[1]) return false;
    const int other = step.inputs[0] == slot ? step.inputs[1] : step.inputs[0];
    const Step& first = steps_[chain.steps[0]];
    if (chain.joins || first.node.op == "BatchNormalization") return false;
    const torch::Tensor& value = constant(other);
    if (!value.defined()) {
      if (chain.added >= 0) return false;
      chain.added = other;
      return true;
    }
    const bool vector = first.node.op == "MatMul" && chain.bias < 0 && chain.added < 0 &&
                        value.dim() == 1 && value.size(0) == constant(first.inputs[1]).size(1);
    if (vector) chain.bias = other;
    return vector;
  }

  std::optional<FusedActivation> activation_of(const Step& step, int slot) const {
    if (step.inputs[0] != slot) return {};
    if (is_plain_op(step, "Relu")) return FusedActivation{ActivationKind::kRelu};
    if (is_plain_op(step, "HardSwish")) return FusedActivation{ActivationKind::kHardSwish};
    if (is_plain_op(step, "HardSigmoid")) {
      return FusedActivation{ActivationKind::kHardSigmoid,
                             number_attribute(step.node, "alpha", 0.2f),
                             number_attribute(step.node, "beta", 0.5f)};
    }
    if (is_plain_op(step, "Gelu")) {
      const auto kind = step.node.attributes.find("approximate");
      const auto* text =
          kind == step.node.attributes.end() ? nullptr : std::get_if<std::string>(&kind->second);
      const bool exact = text == nullptr || *text == "none";
      if (exact) return FusedActivation{ActivationKind::kGelu};
    }
    return is_plain_op(step, "Clip") ? clip_of(step) : std::nullopt;
  }

  std::optional<FusedActivation> clip_of(const Step& step) const {
    if (!step.node.attributes.empty()) return {};  // an old operator set
    float ends[] = {-std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::infinity()};
    for (size_t i = 1; i < step.inputs.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      const std::optional<float> end = scalar(step.inputs[i]);
      if (!end) return {};
      ends[i - 1] = *end;
    }
    if (!(ends[0] <= ends[1])) return {};
    return FusedActivation{ActivationKind::kClip, ends[0], ends[1]};
  }

  // x · (erf(x / √2) + 1) · ½ in five steps, x read by the first and the fourth.
  bool takes_gelu(FusedChain& chain) const {
    const int x = steps_[chain.steps.back()].outputs[0];
    const auto found = readers_.find(x);
    if (found == readers_.end() || found->second.size() != 2 || outputs_.contains(x)) return false;
    const size_t divide = found->second[0], times = found->second[1];
    const Step& first = steps_[divide];
    if (!is_plain_op(first, "Div") || first.inputs[0] != x || !scalar(first.inputs[1]))
      return false;
    std::vector<size_t> steps = {divide};
    for (const char* op : {"Erf", "Add", "Mul", "Mul"}) {
      const int next = only_reader(steps.back());
      if (next < 0 || !is_plain_op(steps_[static_cast<size_t>(next)], op)) return false;
      steps.push_back(static_cast<size_t>(next));
    }
    if (steps[3] != times || other_scalar(steps[2], steps[1]) != 1.0f ||
        other_scalar(steps[4], steps[3]) != 0.5f) {
      return false;
    }
    chain.activation = {ActivationKind::kErfGelu, *scalar(first.inputs[1])};
    chain.steps.insert(chain.steps.end(), steps.begin(), steps.end());
    return true;
  }

  // The constant that the step takes beside the result of the one before.
  std::optional<float> other_scalar(size_t step, size_t before) const {
    const std::vector<int>& inputs = steps_[step].inputs;
    return scalar(inputs[0] == steps_[before].outputs[0] ? inputs[1] : inputs[0]);
  }

  const std::vector<Step>& steps_;
  const Tensors& constants_;
  std::set<int> outputs_;
  std::map<int, std::vector<size_t>> readers_;
  std::set<size_t> taken_;
};

}  // namespace

std::vector<FusedChain> find_chains(const std::vector<Step>& steps, const Tensors& constants,
                                    const std::vector<int>& outputs) {
  ChainFinder finder(steps, constants, outputs);
  std::vector<FusedChain> chains;
  for (size_t i = 0; i < steps.size(); ++i) {
    FusedChain chain = finder.find(i);
    if (!chain.steps.empty()) chains.push_back(std::move(chain));
  }
  return chains;
}

}  // namespace fcp
