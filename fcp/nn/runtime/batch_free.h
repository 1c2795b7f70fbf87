// Whether the bits of every row of a network's answer are the same in batches of any size, so that
// rows may be run together: where every operator computes each of its numbers by one sequence of
// operations, whatever the shape around it. That is true of
//
//   operators that move, choose or compare numbers, and of exact arithmetic (+ − · ÷ √ max min);
//   functions of one number, which run by each_alike (row_product.h) or row_functions.h;
//   products with a constant matrix on the right, which run by row_product;
//   products of two stacks of matrices, which run by stack_product;
//   sums and means over axes, softmax and layer normalisation: sum_along, row_functions.h;
//   convolutions of float32 numbers along one or two axes with constant filters, one group or one
//   filter per channel;
//   products and convolutions of bytes, whose sums are exact;
//   recurrent cells of float32 numbers with constant weights and their usual activations.
//
// Everything else (other convolutions, norms and cells, sines) is left to libtorch,
// whose order of summation depends on the batch: run_apart runs such rows one by one, shared among
// threads. Tested by tests/nn/kernels/cpu/row_product_test.cc.
#pragma once

#include <vector>

#include "fcp/nn/runtime/network.h"

namespace fcp {

bool is_batch_free(const Network& network);

// As Network::run_rows, and the bits of a row do not depend on the rows beside it: on the CPU, the
// rows of a network that is not batch-free run one by one, each on one thread; those of one with
// attention or convolutions in pieces that fit into the caches. Exempt is a network with a fixed
// batch above 1 that is not batch-free.
Tensors run_apart(const Network& network, const Tensors& inputs);

// While it lives, run_apart on this thread runs a network once for the same input tensors, and
// gives its answer again to whoever asks again; for several questions about the same rows. Nobody
// may change the inputs or the answers meanwhile. Where one lives already, a second does nothing.
class RunOnce {
 public:
  RunOnce();
  ~RunOnce();
  RunOnce(const RunOnce&) = delete;
  RunOnce& operator=(const RunOnce&) = delete;

 private:
  friend Tensors run_apart(const Network& network, const Tensors& inputs);
  struct Run {
    const Network* network;
    Tensors inputs, outputs;
  };
  std::vector<Run> runs_;
  bool outer_ = false;
};

}  // namespace fcp
