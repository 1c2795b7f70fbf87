// What the tensors of a running network take, held against the budget of fcp/base/memory.h: a file
// of a kilobyte can describe terabytes. Before a node runs, what its operator will make is told
// from its inputs where it can make more than they are (products, broadcasts, copies side by side);
// what it made is counted afterwards, so that whatever was not told stays one tensor beyond the
// budget. Tested by tests/network/tensor_memory_test.cc.
#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/network/network.h"

namespace fcp {

// At least this many bytes of output; 0: not known.
double expected_bytes(const Node& node, const Tensors& inputs);

class TensorMemory {
 public:
  explicit TensorMemory(size_t slots);

  // Errors name the node, what it takes and what there is.
  void before(const Node& node, const Tensors& inputs) const;
  void made(const Node& node, int slot, const torch::Tensor& value, const Tensors& inputs);
  void freed(int slot);

 private:
  void check(const Node& node, double bytes) const;

  double budget_;
  double alive_ = 0;
  std::vector<double> by_slot_;
};

// Zeros of a shape that a file declares for `name`; an Error where they would not fit the budget.
torch::Tensor declared_zeros(const std::vector<int64_t>& shape, torch::ScalarType type,
                             const std::string& name);

}  // namespace fcp
