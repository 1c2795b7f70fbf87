// A loop over rows on several threads, each of which computes alone: inside of it libtorch and
// OpenBLAS have one thread, and the caller's thread-local state, as whether gradients are wanted,
// holds on every thread. Threads that share an operation meet at its end; where operations are
// small, that takes longer than they do. Tested by tests/nn/runtime/parallel_alone_test.cc.
#pragma once

#include <cstddef>
#include <functional>

namespace fcp {

// As parallel_rows (fcp/base/parallel.h).
void parallel_alone(size_t rows, size_t least, size_t threads,
                    const std::function<void(size_t first, size_t last)>& work);

}  // namespace fcp
