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

// How many threads a loop takes that is told nothing else: 1, until a program says how many it has.
size_t usual_threads();
void set_usual_threads(size_t threads);

}  // namespace fcp
