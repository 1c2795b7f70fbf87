// OpenBLAS keeps threads of its own, of which libtorch tells it nothing: they would take a second
// core for one thread, wait for each other by yielding on a busy one, and their number can change
// the last bits of a product. For the whole process; without OpenBLAS nothing happens.
#pragma once

namespace fcp {

void set_blas_threads(int threads);
int blas_threads();  // 0 without OpenBLAS

}  // namespace fcp
