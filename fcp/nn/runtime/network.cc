#include "fcp/nn/runtime/network.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/half.h"
#include "fcp/nn/graph/simplify.h"
#include "fcp/nn/graph/tensor_types.h"
#include "fcp/nn/kernels/cpu/channel_scale.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/fuse.h"
#include "fcp/nn/runtime/fuse_bytes.h"
#include "fcp/nn/runtime/libtorch_error.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {
namespace {

std::string sizes_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kDynamic ? "?" : std::to_string(shape[i]);
  }
  return text + "]";
}

// Floating-point constants live on the device; integers, which say shapes and axes, on the CPU.
torch::Tensor place(const torch::Tensor& tensor, torch::Device device) {
  return tensor.is_floating_point() ? tensor.to(device) : tensor;
}

// An image whose channels lie side by side, of one axis or two, as everybody else has it.
torch::Tensor in_order(const torch::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const bool line = tensor.dim() == 3 && tensor.transpose(1, 2).is_contiguous();
  return line || channels_lie_last(tensor) ? tensor.contiguous() : tensor;
}

// Marks in each step the slots that nothing reads after it; outputs and constants stay.
void mark_last_reads(std::vector<Step>& steps, const Tensors& constants,
                     const std::vector<int>& outputs) {
  std::set<int> needed(outputs.begin(), outputs.end());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    for (const auto* slots : {&step->inputs, &step->outputs}) {
      for (const int slot : *slots) {
        if (slot < 0 || constants[static_cast<size_t>(slot)].defined()) continue;
        if (needed.insert(slot).second) step->last_read.push_back(slot);
      }
    }
  }
}

}  // namespace

Network::Network(Graph graph, NetworkOptions options)
    : device_(options.device), opset_(graph.opset), domains_(graph.domains) {
  widen_half(graph);
  drop_unneeded(graph);
  check_supported(graph);
  const std::map<std::string, QuantizedConstant> quantized = quantized_constants(graph);
  if (options.fold_constants) fold_constants(graph);
  if (options.fold_constants) rewrite(graph);
  if (options.fold_constants && options.fold_batch_norm) fold_batch_norm(graph);

  std::map<std::string, int> slots;
  const auto slot_of = [&](const std::string& name) {
    if (name.empty()) return -1;
    const auto [entry, fresh] = slots.emplace(name, static_cast<int>(constants_.size()));
    if (fresh) constants_.emplace_back();
    return entry->second;
  };
  for (const auto& [name, tensor] : graph.initializers) {
    constants_[static_cast<size_t>(slot_of(name))] = place(tensor, device_);
  }
  for (const TensorInfo& input : graph.inputs) input_slots_.push_back(slot_of(input.name));
  for (Node& node : graph.nodes) {
    Step step;
    refuse_training(node);
    step.op = make_op(node, graph.opset);
    for (const std::string& input : node.inputs) step.inputs.push_back(slot_of(input));
    for (const std::string& output : node.outputs) step.outputs.push_back(slot_of(output));
    step.node = std::move(node);
    steps_.push_back(std::move(step));
  }
  for (const TensorInfo& output : graph.outputs) output_slots_.push_back(slot_of(output.name));
  std::map<int, QuantizedConstant> steps_of;
  for (const auto& [name, constant] : quantized) {
    const auto slot = slots.find(name);
    if (slot != slots.end()) steps_of.emplace(slot->second, constant);
  }
  fused_ = fuse_steps(fuse_bytes(steps_, constants_, output_slots_, steps_of), constants_,
                      output_slots_);
  mark_last_reads(steps_, constants_, output_slots_);
  mark_last_reads(fused_, constants_, output_slots_);
  inputs_ = std::move(graph.inputs);
  outputs_ = std::move(graph.outputs);
}

Graph Network::graph() const {
  Graph graph;
  graph.opset = opset_;
  graph.domains = domains_;
  graph.inputs = inputs_;
  graph.outputs = outputs_;
  const auto keep_constant = [&](const std::string& name, int slot) {
    if (slot < 0) return;
    const torch::Tensor& value = constants_[static_cast<size_t>(slot)];
    if (value.defined()) graph.initializers.emplace(name, value);
  };
  for (const Step& step : steps_) {
    graph.nodes.push_back(step.node);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      keep_constant(step.node.inputs[i], step.inputs[i]);
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) keep_constant(outputs_[i].name, output_slots_[i]);
  return graph;
}

torch::Tensor Network::forward(const torch::Tensor& input) const {
  if (inputs_.size() != 1 || outputs_.size() != 1) {
    fail("the network has ", inputs_.size(), " inputs and ", outputs_.size(),
         " outputs, expected one of each");
  }
  return run({input})[0];
}

Tensors Network::run(const Tensors& inputs) const { return run_fused(inputs, Observer()); }

Tensors Network::run(const Tensors& inputs, const Observer& observe) const {
  return run_steps(steps_, inputs, observe);
}

Tensors Network::run_fused(const Tensors& inputs, const Observer& observe) const {
  const bool slopes = std::any_of(inputs.begin(), inputs.end(), wants_gradient);
  return run_steps(slopes || !device_.is_cpu() ? steps_ : fused_, inputs, observe);
}

void Network::check_input(const TensorInfo& info, const torch::Tensor& value) const {
  if (!info.known_rank) return;
  bool fits = static_cast<size_t>(value.dim()) == info.shape.size();
  for (size_t i = 0; fits && i < info.shape.size(); ++i) {
    fits = info.shape[i] == kDynamic || info.shape[i] == value.size(static_cast<int64_t>(i));
  }
  if (!fits) {
    fail("input '", info.name, "': found shape ", sizes_text(value.sizes().vec()), ", expected ",
         sizes_text(info.shape));
  }
}

Tensors Network::run_steps(const std::vector<Step>& steps, const Tensors& inputs,
                           const Observer& observe) const {
  if (inputs.size() != inputs_.size()) {
    fail("the network has ", inputs_.size(), " inputs, ", inputs.size(), " were given");
  }
  Tensors values = constants_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_input(inputs_[i], inputs[i]);
    const bool typed = inputs_[i].type != ElementType::kUndefined;
    values[static_cast<size_t>(input_slots_[i])] =
        typed ? inputs[i].to(device_, scalar_type(inputs_[i].type)) : inputs[i];
  }
  TensorMemory memory(values.size());
  Tensors arguments;
  for (const Step& step : steps) {
    arguments.clear();
    for (const int slot : step.inputs) {
      arguments.push_back(slot < 0 ? torch::Tensor() : values[static_cast<size_t>(slot)]);
      if (!step.any_layout) arguments.back() = in_order(arguments.back());
    }
    Tensors results;
    memory.before(step.node, arguments);
    try {
      results = step.op->forward(arguments);
    } catch (const c10::Error& error) {
      fail_libtorch(describe(step.node), error);
    }
    if (observe) observe(step, arguments, results);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      if (i >= results.size()) fail(describe(step.node), ": output ", i, " is not supported");
      memory.made(step.node, step.outputs[i], results[i], arguments);
      values[static_cast<size_t>(step.outputs[i])] = std::move(results[i]);
    }
    for (const int slot : step.last_read) {
      values[static_cast<size_t>(slot)] = torch::Tensor();
      memory.freed(slot);
    }
  }
  Tensors outputs;
  for (const int slot : output_slots_)
    outputs.push_back(in_order(values[static_cast<size_t>(slot)]));
  return outputs;
}

int64_t Network::fixed_batch() const {
  for (const TensorInfo& input : inputs_) {
    if (!input.shape.empty() && input.shape[0] != kDynamic) return input.shape[0];
  }
  return kDynamic;
}

Tensors Network::run_rows(const Tensors& inputs) const {
  const int64_t batch = fixed_batch();
  if (batch == kDynamic || inputs.empty()) return run(inputs);
  const int64_t rows = inputs[0].size(0);
  std::vector<Tensors> parts(outputs_.size());
  for (int64_t first = 0; first < rows; first += batch) {
    const int64_t present = std::min(batch, rows - first);
    Tensors chunk;
    for (const torch::Tensor& input : inputs) {
      torch::Tensor part = input.narrow(0, first, present);
      if (present < batch) {
        std::vector<int64_t> padding = part.sizes().vec();
        padding[0] = batch - present;
        part = torch::cat({part, part.narrow(0, present - 1, 1).expand(padding)});
      }
      chunk.push_back(part);
    }
    const Tensors results = run(chunk);
    for (size_t i = 0; i < results.size(); ++i) {
      parts[i].push_back(results[i].narrow(0, 0, present));
    }
  }
  Tensors outputs;
  for (const Tensors& part : parts) outputs.push_back(torch::cat(part));
  return outputs;
}

Tensors zero_inputs(const Graph& graph, int64_t rows) {
  Tensors inputs;
  for (const TensorInfo& info : graph.inputs) {
    std::vector<int64_t> shape = info.shape;
    const bool known = info.known_rank && !shape.empty() &&
                       (shape[0] == kDynamic || shape[0] == rows) &&
                       std::find(shape.begin() + 1, shape.end(), kDynamic) == shape.end();
    if (!known) return {};
    shape[0] = rows;
    inputs.push_back(declared_zeros(shape, info.type, info.name));
  }
  return inputs;
}

Tensors values_at_zero(const Graph& graph, const std::vector<std::string>& names, int64_t rows) {
  const Tensors inputs = zero_inputs(graph, rows);
  if (inputs.empty()) return {};
  std::vector<TensorInfo> wanted;
  const std::map<std::string, ElementType> types = tensor_types(graph);
  for (const std::string& name : names) wanted.push_back({name, types.at(name), false, {}, {}});
  const torch::NoGradGuard no_gradients;
  return Network(extract(graph, graph.inputs, wanted)).run(inputs);
}

}  // namespace fcp
