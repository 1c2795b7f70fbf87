// Whether the bits of every row of a network's answer are the same in batches of any size, so that
// rows may be run together: where every operator computes each of its numbers by one sequence of
// operations, whatever the shape around it. That is true of
//
//   operators that move, choose or compare numbers, and of exact arithmetic (+ − · ÷ √ max min);
//   functions of one number, which run by each_alike (row_product.h);
//   products with a constant matrix on the right, which run by row_product.
//
// Everything else (convolutions, sums and norms over axes, attention, recurrent layers, sines) is
// left to libtorch, whose order of summation may depend on the batch: run_apart runs such rows one
// by one, unless it finds that kRowsTogether of them have the same bits together. It tries the
// first rows of each shape, alone and together: which sums libtorch orders how depends on shapes
// and threads, not on the numbers. Tested by tests/network/row_product_test.cc.
#pragma once

#include "fcp/network/network.h"

namespace fcp {

bool is_batch_free(const Network& network);

inline constexpr int64_t kRowsTogether = 8;

// As Network::run_rows, and the bits of a row do not depend on the rows beside it: on the CPU, the
// rows of a network that is not batch-free run one by one, or kRowsTogether at a time where that
// gives the bits of one by one. Exempt is such a network with a fixed batch above 1.
Tensors run_apart(const Network& network, const Tensors& inputs);

}  // namespace fcp
