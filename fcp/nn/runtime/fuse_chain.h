// Which steps may run as one (fuse.h): a first one and those that follow it, where nothing else
// reads what is in between. Tested by tests/nn/runtime/fuse_test.cc.
#pragma once

#include <vector>

#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

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

}  // namespace fcp
