// If, Loop and Scan: a graph inside a node, run forward as a Network of its own.
//
//   If    one of two graphs, by a condition computed from the data;
//   Loop  (i, condition, state) → (condition, state, parts), as often as a count or a condition
//         say;
//   Scan  (state, slices) → (state, parts), once for each slice of its sequences.
//
// What a graph reads from around its node comes as the node's last inputs. The parts of each trip
// are put side by side: Loop along a new first axis, Scan along the axes it names.
// Assumes nothing about shapes: a state may change its shape from trip to trip. There are no
// gradients and no bounds, so these operators belong before a cut.
// Cost: that of the graph, times the trips. Reference: ONNX operator specification (If 1, Loop 1,
// Scan 9). Tested by tests/nn/ops/control_flow_test.cc.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/memory.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {
namespace {

// A condition that never fails must not run forever, nor loops in loops.
constexpr int64_t kMostTrips = int64_t{1} << 20;

// The trips of a loop and of all loops inside it, on this thread. The user may end them.
class Trips {
 public:
  explicit Trips(const Node& node) : node_(node), outermost_(!running) {
    if (outermost_) done = 0;
    running = true;
  }
  ~Trips() { running = !outermost_; }
  Trips(const Trips&) = delete;
  Trips& operator=(const Trips&) = delete;

  void begin() const {
    check_interrupted();
    if (done++ < kMostTrips) return;
    fail(describe(node_), ": does not end in ", kMostTrips,
         " trips, those of loops in it included");
  }

 private:
  static thread_local bool running;
  static thread_local int64_t done;
  const Node& node_;
  bool outermost_;
};

thread_local bool Trips::running = false;
thread_local int64_t Trips::done = 0;

double bytes_of_states(const Tensors& all, size_t first, size_t count) {
  double bytes = 0;
  for (size_t i = first; i < first + count; ++i) {
    if (all[i].defined()) bytes += static_cast<double>(all[i].nbytes());
  }
  return bytes;
}

// A graph inside a node, to be run on whatever it is given.
class Inside {
 public:
  Inside(OpArguments& arguments, const std::string& name)
      : node_(arguments.node()), network_(prepared(arguments, name)) {}

  size_t inputs() const { return network_.inputs().size(); }
  size_t outputs() const { return network_.outputs().size(); }
  torch::ScalarType type(size_t output) const {
    return scalar_type(network_.outputs()[output].type);
  }

  // Computed on the processor, wherever the inputs are; numbers go back to where they are.
  Tensors run(const Tensors& inputs) const {
    torch::Device device = torch::kCPU;
    Tensors near = inputs;
    for (torch::Tensor& input : near) {
      if (!input.defined() || input.is_cpu()) continue;
      device = input.device();
      input = input.to(torch::kCPU);
    }
    Tensors results = network_.run(near);
    if (device.is_cpu()) return results;
    for (torch::Tensor& result : results) {
      if (result.is_floating_point()) result = result.to(device);
    }
    return results;
  }

  void expect(size_t inputs, size_t outputs) const {
    if (inputs == this->inputs() && outputs == this->outputs()) return;
    fail(describe(node_), ": its graph has ", this->inputs() - node_.captured, " inputs and ",
         this->outputs(), " outputs, expected ", inputs - node_.captured, " and ", outputs);
  }

 private:
  static Graph prepared(OpArguments& arguments, const std::string& name) {
    Graph graph = arguments.graph(name);
    graph.opset = arguments.opset();
    // A state may grow from one iteration to the next, whatever the file declares.
    for (TensorInfo& input : graph.inputs) input.known_rank = false;
    for (TensorInfo& input : graph.inputs) {  // not what the file says: states change their shape
      input.type = ElementType::kUndefined;
      input.known_rank = false;
    }
    return graph;
  }

  Node node_;
  Network network_;
};

bool truth_of(const torch::Tensor& tensor, const Node& node, const char* what) {
  if (!tensor.defined() || tensor.numel() != 1) {
    fail(describe(node), ": ", what, " has shape ",
         tensor.defined() ? shape_text(tensor.sizes()) : "none", ", expected one truth");
  }
  return tensor.to(torch::kBool).item<bool>();
}

class IfOp : public Op {
 public:
  explicit IfOp(OpArguments& arguments)
      : node_(arguments.node()),
        if_true_(arguments, "then_branch"),
        if_false_(arguments, "else_branch") {
    arguments.expect_inputs(1 + node_.captured, 1 + node_.captured);
    for (const Inside* branch : {&if_true_, &if_false_}) {
      branch->expect(node_.captured, node_.outputs.size());
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const Inside& branch = truth_of(inputs[0], node_, "the condition") ? if_true_ : if_false_;
    return branch.run({inputs.begin() + 1, inputs.end()});
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  Inside if_true_, if_false_;
};

// The parts that trips add to the outputs, which may not outgrow the memory of a network.
class Parts {
 public:
  Parts(size_t outputs, const Node& node) : parts_(outputs), node_(node) {}

  void add(size_t output, const torch::Tensor& part) {
    parts_[output].push_back(part);
    bytes_ += static_cast<double>(part.nbytes());
    if (bytes_ > static_cast<double>(memory_budget())) {
      fail(describe(node_), ": what its trips give takes more memory than networks may have; ",
           "allow more memory, or take a smaller batch");
    }
  }

  double bytes() const { return bytes_; }

  // Side by side along a new axis, counted as that of the result.
  torch::Tensor stacked(size_t output, int64_t axis, bool backwards, torch::ScalarType type) {
    Tensors& parts = parts_[output];
    if (parts.empty()) {
      const bool known = type != torch::ScalarType::Undefined;
      return torch::empty({0}, known ? type : torch::kFloat);
    }
    if (backwards) std::reverse(parts.begin(), parts.end());
    for (const torch::Tensor& part : parts) {
      if (part.sizes() == parts[0].sizes()) continue;
      fail(describe(node_), ": its trips give shapes ", shape_text(parts[0].sizes()), " and ",
           shape_text(part.sizes()), ", expected one shape");
    }
    return torch::stack(parts, normalize_axis(axis, parts[0].dim() + 1, node_));
  }

 private:
  std::vector<Tensors> parts_;
  double bytes_ = 0;
  const Node& node_;
};

class LoopOp : public Op {
 public:
  explicit LoopOp(OpArguments& arguments) : node_(arguments.node()), body_(arguments, "body") {
    if (node_.inputs.size() < 2 + node_.captured) {
      fail(describe(node_), ": has ", node_.inputs.size() - node_.captured,
           " inputs, expected a count, a condition and states");
    }
    states_ = node_.inputs.size() - node_.captured - 2;
    parts_ = node_.outputs.size() - std::min(states_, node_.outputs.size());
    body_.expect(node_.inputs.size(), 1 + states_ + parts_);
  }

  Tensors forward(const Tensors& inputs) const override {
    const int64_t most =
        inputs[0].defined() ? count_of(inputs[0]) : std::numeric_limits<int64_t>::max();
    bool goes_on = !inputs[1].defined() || truth_of(inputs[1], node_, "the condition");
    Tensors given = inputs;
    Parts parts(parts_, node_);
    const Trips trips(node_);
    HeldTensors held;
    for (int64_t trip = 0; goes_on && trip < most; ++trip) {
      trips.begin();
      given[0] = torch::tensor(trip, torch::kLong);
      given[1] = torch::tensor(true);
      const Tensors results = body_.run(given);
      goes_on = truth_of(results[0], node_, "the condition that its body gives");
      for (size_t i = 0; i < states_; ++i) given[2 + i] = results[1 + i];
      for (size_t i = 0; i < parts_; ++i) parts.add(i, results[1 + states_ + i]);
      held.set(bytes_of_states(given, 2, states_) + parts.bytes());
    }
    Tensors outputs(given.begin() + 2, given.begin() + 2 + static_cast<std::ptrdiff_t>(states_));
    for (size_t i = 0; i < parts_; ++i) {
      outputs.push_back(parts.stacked(i, 0, false, body_.type(1 + states_ + i)));
    }
    return outputs;
  }
  bool differentiable() const override { return false; }

 private:
  int64_t count_of(const torch::Tensor& count) const {
    if (count.numel() != 1) {
      fail(describe(node_), ": its count has shape ", shape_text(count.sizes()),
           ", expected one number");
    }
    return count.to(torch::kLong).item<int64_t>();
  }

  Node node_;
  Inside body_;
  size_t states_ = 0, parts_ = 0;
};

class ScanOp : public Op {
 public:
  explicit ScanOp(OpArguments& arguments)
      : node_(arguments.node()),
        body_(arguments, "body"),
        sequences_(
            static_cast<size_t>(std::max<int64_t>(0, arguments.integer("num_scan_inputs", 0)))) {
    if (arguments.opset() < 9) {
      fail(describe(node_),
           ": is of operator set 8, which has a batch axis of its own; expected 9 ", "or later");
    }
    const size_t own = node_.inputs.size() - node_.captured;
    if (sequences_ < 1 || sequences_ > own || node_.outputs.size() < own - sequences_) {
      fail(describe(node_), ": has ", own, " inputs, ", sequences_, " of them sequences, and ",
           node_.outputs.size(), " outputs");
    }
    states_ = own - sequences_;
    parts_ = node_.outputs.size() - states_;
    arguments.expect_inputs(node_.inputs.size(), node_.inputs.size());
    body_.expect(node_.inputs.size(), states_ + parts_);
    input_axes_ = read_list(arguments, "scan_input_axes", sequences_);
    input_back_ = read_list(arguments, "scan_input_directions", sequences_);
    output_axes_ = read_list(arguments, "scan_output_axes", parts_);
    output_back_ = read_list(arguments, "scan_output_directions", parts_);
  }

  Tensors forward(const Tensors& inputs) const override {
    const int64_t trips = trips_over(inputs);
    Tensors given = inputs;
    Parts parts(parts_, node_);
    const Trips counted(node_);
    HeldTensors held;
    for (int64_t trip = 0; trip < trips; ++trip) {
      counted.begin();
      for (size_t i = 0; i < sequences_; ++i) {
        const torch::Tensor& sequence = inputs[states_ + i];
        given[states_ + i] =
            sequence.select(axis_of(sequence, i), input_back_[i] != 0 ? trips - 1 - trip : trip);
      }
      const Tensors results = body_.run(given);
      for (size_t i = 0; i < states_; ++i) given[i] = results[i];
      for (size_t i = 0; i < parts_; ++i) parts.add(i, results[states_ + i]);
      held.set(bytes_of_states(given, 0, states_) + parts.bytes());
    }
    Tensors outputs(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(states_));
    for (size_t i = 0; i < parts_; ++i) {
      outputs.push_back(
          parts.stacked(i, output_axes_[i], output_back_[i] != 0, body_.type(states_ + i)));
    }
    return outputs;
  }
  bool differentiable() const override { return false; }

 private:
  std::vector<int64_t> read_list(OpArguments& arguments, const std::string& name,
                                 size_t count) const {
    const std::vector<int64_t> found = arguments.integers(name, std::vector<int64_t>(count, 0));
    if (found.size() != count) {
      fail(describe(node_), ": attribute '", name, "' has ", found.size(), " elements, expected ",
           count);
    }
    return found;
  }

  int64_t axis_of(const torch::Tensor& sequence, size_t i) const {
    return normalize_axis(input_axes_[i], sequence.dim(), node_);
  }

  int64_t trips_over(const Tensors& inputs) const {
    int64_t trips = -1;
    for (size_t i = 0; i < sequences_; ++i) {
      const torch::Tensor& sequence = inputs[states_ + i];
      const int64_t length = sequence.size(axis_of(sequence, i));
      if (trips >= 0 && length != trips) {
        fail(describe(node_), ": its sequences have lengths ", trips, " and ", length,
             ", expected one length");
      }
      trips = length;
    }
    return trips;
  }

  Node node_;
  Inside body_;
  size_t sequences_, states_ = 0, parts_ = 0;
  std::vector<int64_t> input_axes_, input_back_, output_axes_, output_back_;
};

}  // namespace

OpPointer make_if(OpArguments& arguments) { return std::make_unique<IfOp>(arguments); }
OpPointer make_loop(OpArguments& arguments) { return std::make_unique<LoopOp>(arguments); }
OpPointer make_scan(OpArguments& arguments) { return std::make_unique<ScanOp>(arguments); }

}  // namespace fcp
