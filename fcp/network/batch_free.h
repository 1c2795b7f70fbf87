// Whether the bits of every row of a network's answer are the same in batches of any size, so that
// rows may be run together: where every operator computes each of its numbers by one sequence of
// operations, whatever the shape around it. That is true of
//
//   operators that move, choose or compare numbers, and of exact arithmetic (+ − · ÷ √ max min);
//   functions of one number, which run by each_alike (row_product.h);
//   products with a constant matrix on the right, which run by row_product;
//   sums and means over axes and softmax, which run by sum_along.
//
// Everything else (convolutions, norms, attention, recurrent layers, sines) is left to libtorch,
// whose order of summation depends on the batch: run_apart runs such rows one by one, shared among
// threads. Tested by tests/network/row_product_test.cc.
#pragma once

#include "fcp/network/network.h"

namespace fcp {

bool is_batch_free(const Network& network);

// As Network::run_rows, and the bits of a row do not depend on the rows beside it: on the CPU, the
// rows of a network that is not batch-free run one by one, each on one thread. Exempt is such a
// network with a fixed batch above 1.
Tensors run_apart(const Network& network, const Tensors& inputs);

}  // namespace fcp
