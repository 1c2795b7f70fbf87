// What holds for an operator whatever its attributes: the last column of operators.inc. What
// depends on attributes or constants, the operator's class says (op.h).
#pragma once

#include "fcp/nn/graph/graph.h"

namespace fcp {

enum OpTraits : unsigned {
  kNoTraits = 0,
  kBatchFree = 1,   // each number by one sequence of operations, whatever the batch (batch_free.h)
  kAnyLayout = 2,   // the same bits however the numbers of the inputs lie in memory
  kBroadcasts = 4,  // stretches its inputs against each other
  kTruths = 8,      // its outputs are truth values
  kIndices = 16,    // its outputs are int64
};

// Whether the operator of a node has all of these; false where it is not known.
bool has_traits(const Node& node, unsigned traits);

}  // namespace fcp
