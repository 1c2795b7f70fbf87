// Several operators that run as one: a product or a convolution with what follows it (finish.h).
// Where the first of them cannot do the rest, as for doubles, all run one after the other; either
// way the results are the same to the last bit. Without gradients. Tested by
// tests/network/fuse_test.cc.
#pragma once

#include <memory>
#include <vector>

#include "fcp/network/op.h"

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
    std::shared_ptr<const Op> op;
    std::vector<Source> sources;
  };

  // The first part's inputs are the first of the whole. `bias` and `added` are inputs, -1: none.
  FusedOp(std::vector<Part> parts, const Bending& activation, int bias, int added)
      : parts_(std::move(parts)), activation_(activation), bias_(bias), added_(added) {}

  Tensors forward(const Tensors& inputs) const override;

 private:
  std::vector<Part> parts_;
  Bending activation_;
  int bias_, added_;
};

}  // namespace fcp
