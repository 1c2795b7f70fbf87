// Which bounds each node of a network can propagate, found without running it.
#pragma once

#include <vector>

#include "fcp/nn/runtime/network.h"

namespace fcp {

// For each step: which of its inputs are the same for all values of the network's inputs, and the
// rule that follows. A step with constant inputs alone only has to run, which any can; so does one
// that takes what is carried past a cut (carry.h), a constant of each row.
struct BoundPlan {
  bool runs = false;  // its outputs are constants
  BoundRule rule = BoundRule::kNone;
  BoundSupport support = BoundSupport::kNone;
};
std::vector<BoundPlan> plan_bounds(const Network& network);

// The support alone, with what an operator gets that bounds take apart (lower_attention.h).
std::vector<BoundSupport> bound_support(const Network& network);

const char* support_name(BoundSupport support);  // "none", "interval", "linear"

}  // namespace fcp
