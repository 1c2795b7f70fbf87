// One loop over rows on several threads, each with a contiguous share. Threads are made for the
// loop and end with it, so that nothing spins afterwards and nothing nests; what a thread costs,
// some tens of microseconds, is why no thread gets fewer than `least` rows. Tested by
// tests/base/parallel_test.cc.
#pragma once

#include <cstddef>
#include <functional>

namespace fcp {

// `work` takes rows [first, last). The first exception of any share is thrown again at the end.
void parallel_rows(size_t rows, size_t least, size_t threads,
                   const std::function<void(size_t first, size_t last)>& work);

}  // namespace fcp
