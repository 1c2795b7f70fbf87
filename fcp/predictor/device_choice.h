// The device `auto`: CUDA where it is expected to be faster, the CPU otherwise, for commands that
// run a network over rows.
//
// The rule, which stands here alone. Both devices read the same rows; besides, a CUDA device has to
// be started, and rows copied to it, before it saves arithmetic:
//
//   CPU   rows · flops / (threads · 10 Gflop/s)
//   CUDA  0.6 s + rows · numbers · 4 bytes / (5 GB/s) + rows · flops / (5 Tflop/s)
//
// flops are those of the network for one row, as `inspect` counts them. CUDA is taken where its
// time is shorter; never where the number of rows, or the shape of a row, is not known beforehand.
// Rates are round numbers of small networks: what matters is the first half second. The choice
// depends on the number of threads and on nothing that is measured, so that it does not change from
// run to run. Tested by tests/predictor/context_test.cc.
#pragma once

#include <cstddef>

#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/context.h"

namespace fcp {

struct DeviceWork {
  double rows = 0;
  double flops = 0;    // of the network, for one row
  double numbers = 0;  // of one row
  int threads = 1;
};

// The rule, for a machine that has a CUDA device.
bool cuda_is_faster(const DeviceWork& work);

// Sets the context's device where it is still to be chosen, and notes it where it is CUDA.
void choose_device(const Graph& network, const RowSource& source, Context& context);

}  // namespace fcp
