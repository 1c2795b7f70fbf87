// Networks whose rows do not lie along the first axis, written so that they do.
//
//   inputs [T, N, …]     as PyTorch's recurrent layers and their states take them: the second axis
//                        is called a batch, or is the open one and answers come row by row
//   outputs [T, N, …]    of such networks
//   outputs [N·K, …]     whose rows have their numbers below each other, as skl2onnx writes
//                        perceptrons of several targets: become [N, K, …]
//
// Every other network comes back as it is. Which axis an output has its rows in is found by running
// rows of zeros, where the file fixes all dimensions but that of the rows.
// Tested by tests/nn/graph/batch_axis_test.cc.
#pragma once

#include "fcp/nn/graph/graph.h"

namespace fcp {

Graph with_rows_first(const Graph& network);

}  // namespace fcp
