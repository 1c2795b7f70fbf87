// Which axes a reduction goes over: shared by reduce.cc and norms.cc.
#pragma once

#include <vector>

#include "fcp/nn/ops/op.h"

namespace fcp {

// Read from the node: an attribute in older operator sets, an input from `inputs_since` on.
class ReducedAxes {
 public:
  ReducedAxes(OpArguments& arguments, int64_t inputs_since);

  // The axes counted from the front, sorted; all of them where none are named. Nothing where the
  // node asks to leave the tensor as it is (noop_with_empty_axes).
  std::vector<int64_t> of(const Tensors& inputs) const;
  bool keep_dimensions() const { return keep_; }

 private:
  Node node_;
  bool are_input_;
  bool keep_;
  bool empty_means_none_ = false;
  std::vector<int64_t> axes_;
};

}  // namespace fcp
