// OpenBLAS keeps threads of its own, of which libtorch tells it nothing: they would take a second
// core for one thread, wait for each other by yielding on a busy one, and their number can change
// the last bits of a product. For the whole process; without OpenBLAS nothing happens.
// Tested by tests/training/ensemble_fit_test.cc and tests/nn/kernels/cpu/row_product_test.cc.
#pragma once

namespace fcp {

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
