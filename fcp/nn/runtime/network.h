// A network that runs: the graph of an ONNX file, each node turned into an Op, on libtorch
// tensors. Immutable once made; any number of threads may run it.
//
//   Network network(read_onnx("model.onnx"));
//   torch::Tensor y = network.forward(x);        // x: N × the input's shape
//
// Gradients with respect to the inputs flow by libtorch's autograd; the weights never ask for any.
// Under torch::NoGradGuard tensors are freed as soon as their last reader is done.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"
#include "fcp/nn/ops/op.h"

namespace fcp {

struct NetworkOptions {
  bool fold_constants = true;
  bool fold_batch_norm = true;  // into the layer before it; see simplify.h
  torch::Device device = torch::kCPU;
};

// One node, ready to run. Tensors are known by slots: indices into a table of values.
struct Step {
  Node node;
  std::shared_ptr<const Op> op;
  std::vector<int> inputs;     // -1: absent
  std::vector<int> outputs;    // -1: not wanted
  std::vector<int> last_read;  // slots that no later step reads
  bool any_layout = true;      // false: wants images with their places side by side
};

class Network {
 public:
  // What no output depends on is left out. An Error lists all nodes that cannot be run.
  explicit Network(Graph graph, NetworkOptions options = {});

  // One input, one output.
  torch::Tensor forward(const torch::Tensor& input) const;

  // One tensor for each of graph().inputs in, one for each of graph().outputs out.
  Tensors run(const Tensors& inputs) const;

  // As run, and shows every step with its input and output tensors to `observe`.
  using Observer = std::function<void(const Step&, const Tensors& inputs, const Tensors& outputs)>;
  Tensors run(const Tensors& inputs, const Observer& observe) const;

  // As run without an observer does it where no gradients are wanted, on the CPU: some steps are
  // several nodes in one (fuse.h), shown by the first node's name, and images may lie in memory
  // with their channels side by side. The same bits, but for quantised networks (fuse_bytes.h).
  Tensors run_fused(const Tensors& inputs, const Observer& observe) const;

  // The rows an exported file fixed as its batch, or kDynamic where any number goes. run_rows pads
  // the last batch of such a file and drops the padding again.
  int64_t fixed_batch() const;
  Tensors run_rows(const Tensors& inputs) const;

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  const std::vector<Step>& steps() const { return steps_; }
  const Tensors& constants() const { return constants_; }  // by slot; undefined where not constant
  const std::vector<int>& input_slots() const { return input_slots_; }
  const std::vector<int>& output_slots() const { return output_slots_; }
  torch::Device device() const { return device_; }

  // The graph that runs, constants and normalisations folded: to cut and change it once more.
  Graph graph() const;

 private:
  void check_input(const TensorInfo& info, const torch::Tensor& value) const;
  Tensors run_steps(const std::vector<Step>& steps, const Tensors& inputs,
                    const Observer& observe) const;

  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  std::vector<Step> steps_;
  std::vector<Step> fused_;
  Tensors constants_;
  std::vector<int> input_slots_;
  std::vector<int> output_slots_;
  torch::Device device_;
  int64_t opset_ = 0;
  std::map<std::string, int64_t> domains_;
};

// Inputs of zeros, for what can be told of a network by running it: shapes, and where rows go.
// Tested by tests/nn/graph/select_first_test.cc and tests/bounds/moved_rows_test.cc.

// So many rows of zeros for each input; empty where the file fixes another number of rows, or does
// not tell all other dimensions.
Tensors zero_inputs(const Graph& graph, int64_t rows);

// The tensors of these names for those inputs; empty likewise.
Tensors values_at_zero(const Graph& graph, const std::vector<std::string>& names, int64_t rows);

}  // namespace fcp
