// What a build without CUDA has of free_lines_cuda.h.
#include "fcp/base/error.h"
#include "fcp/nn/kernels/cuda/free_lines_cuda.h"

namespace fcp {

bool takes_free_lines_cuda(const torch::Tensor&, int64_t) { return false; }

HingeResult along_free_lines_cuda(const torch::Tensor&, const OneHinge&) {
  fail("this build of fcp has no CUDA lines");
}

}  // namespace fcp
