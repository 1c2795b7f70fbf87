// The steps that a network runs where nobody looks at single nodes and no gradients are wanted: a
// product or a convolution with constant weights takes along what follows it, if nothing else reads
// what is in between:
//
//   Conv, Gemm       [+ a tensor]                    [activation]
//   MatMul           [+ a constant for each column]  [+ a tensor] [activation]
//   [Concat of channels] BatchNormalization          [activation]
//
// (epilogue.h lists the activations; GELU is known as Gelu and as the Div, Erf, Add, Mul, Mul that
// exporters write.) On the way images keep their channels side by side (libtorch's channels-last
// layout) from one convolution to the next; operators that are not known to give the same bits in
// every layout get theirs as everybody else does. The bits are those of the single steps.
//
// Cost: linear in the nodes. Tested by tests/nn/runtime/fuse_test.cc.
#pragma once

#include <memory>
#include <vector>

#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/ops/op.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// Several operators that run as one: a product or a convolution with what follows it (epilogue.h).
// Where the first of them cannot do the rest, as for doubles, all run one after the other; either
// way the results are the same to the last bit. Without gradients. Tested by
// tests/nn/runtime/fuse_test.cc.

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

// Which steps may run as one (fuse.h): a first one and those that follow it, where nothing else
// reads what is in between. Tested by tests/nn/runtime/fuse_test.cc.

// A first step and those it takes along, in their order.
struct FusedChain {
  std::vector<size_t> steps;
  bool joins = false;  // a Concat of channels stands before the step that takes the others along
  FusedActivation activation;
  int bias = -1, added = -1;  // slots
};

// The chains of all steps that can be the first of one, each step in one chain at most.
std::vector<FusedChain> find_chains(const std::vector<Step>& steps, const Tensors& constants,
                                    const std::vector<int>& outputs);

// `last_read` is left empty.
std::vector<Step> fuse_steps(const std::vector<Step>& steps, const Tensors& constants,
                             const std::vector<int>& outputs);

// The steps of a chain as one.
Step fused_step(const std::vector<Step>& steps, const FusedChain& chain);

}  // namespace fcp
