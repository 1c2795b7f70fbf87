// What the tensors of a running network take, held against the budget of fcp/base/memory.h: a file
// of a kilobyte can describe terabytes. Before a node runs, what its operator will make is told
// from its inputs where it can make more than they are (products, broadcasts, copies side by side);
// what it made is counted afterwards, so that whatever was not told stays one tensor beyond the
// budget. Tested by tests/nn/runtime/tensor_memory_test.cc.
#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

namespace fcp {

// At least this many bytes of output; 0: not known.
double expected_bytes(const Node& node, const Tensors& inputs);

class TensorMemory {
 public:
  // A network inside another one's node starts with what that one has, on the same thread.
  explicit TensorMemory(size_t slots);
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  // Errors name the node, what it takes and what there is.
  void before(const Node& node, const Tensors& inputs) const;
  void made(const Node& node, int slot, const torch::Tensor& value, const Tensors& inputs);
  void freed(int slot);

 private:
  void check(const Node& node, double bytes) const;

  double budget_;
  const TensorMemory* around_;
  double alive_;
  std::vector<double> by_slot_;
};

// Bytes that a node holds while networks inside it run: the states and parts of a loop.
class HeldTensors {
 public:
  HeldTensors() = default;
  ~HeldTensors();
  HeldTensors(const HeldTensors&) = delete;
  HeldTensors& operator=(const HeldTensors&) = delete;

  void set(double bytes);

 private:
  double bytes_ = 0;
};

// Zeros of a shape that a file declares for `name`; an Error where they would not fit the budget.
torch::Tensor declared_zeros(const std::vector<int64_t>& shape, ElementType type,
                             const std::string& name);

}  // namespace fcp
