// Several operators that run as one: a product or a convolution with what follows it (epilogue.h).
// Where the first of them cannot do the rest, as for doubles, all run one after the other; either
// way the results are the same to the last bit. Without gradients. Tested by
// tests/nn/runtime/fuse_test.cc.
#pragma once

#include <memory>
#include <vector>

#include "fcp/nn/ops/op.h"

namespace fcp {

class FusedOp : public Op {
 public:
  // Where an input of a part comes from: input `index` of the whole, or the result of an earlier
  // part; -1: absent.
  struct Source {
    int index = -1;
    bool inner = false;
  };
  struct Part {
    Node node;
    std::shared_ptr<const Op> op;
    std::vector<Source> sources;
  };

  // What the part that takes the others along does for them.
  struct Ends {
    FusedActivation activation;
    int bias = -1, added = -1;  // inputs, -1: none
    bool joins = false;         // it is the second, and takes the first one's inputs for its first
  };

  // The first part's inputs are the first of the whole.
  FusedOp(std::vector<Part> parts, const Ends& ends) : parts_(std::move(parts)), ends_(ends) {}

  Tensors forward(const Tensors& inputs) const override;

 private:
  torch::Tensor at_once(const Tensors& inputs) const;

  std::vector<Part> parts_;
  Ends ends_;
};

}  // namespace fcp
