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

// OpenBLAS keeps threads of its own, of which libtorch tells it nothing: they would take a second
// core for one thread, wait for each other by yielding on a busy one, and their number can change
// the last bits of a product. For the whole process; without OpenBLAS nothing happens.
// Tested by tests/training/ensemble_fit_test.cc and tests/nn/kernels/cpu/row_product_test.cc.

void set_blas_threads(int threads);
int blas_threads();  // 0 without OpenBLAS

// OpenBLAS has at most `most` threads while this is in scope, and the least of all limits that are
// in scope at once, on whatever threads they are. The last one to go gives it back those it had.
class BlasThreadLimit {
 public:
  explicit BlasThreadLimit(int most);
  ~BlasThreadLimit();
  BlasThreadLimit(const BlasThreadLimit&) = delete;
  BlasThreadLimit& operator=(const BlasThreadLimit&) = delete;

 private:
  int most_;
};

}  // namespace fcp
