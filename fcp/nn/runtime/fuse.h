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

#include <vector>

#include "fcp/nn/runtime/fuse_chain.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// `last_read` is left empty.
std::vector<Step> fuse_steps(const std::vector<Step>& steps, const Tensors& constants,
                             const std::vector<int>& outputs);

// The steps of a chain as one.
Step fused_step(const std::vector<Step>& steps, const FusedChain& chain);

}  // namespace fcp
