// What a build without CUDA has of line_rows_cuda.h.
#include "fcp/base/error.h"
#include "fcp/nn/kernels/cuda/line_rows_cuda.h"

namespace fcp {

bool takes_cuda_loops(const torch::Tensor&) { return false; }

torch::Tensor along_lines_cuda(const torch::Tensor&, const SideLines&, int64_t, torch::Tensor&) {
  fail("this build of fcp has no CUDA lines");
}

RowReach row_reach_cuda(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, bool) {
  fail("this build of fcp has no CUDA lines");
}

}  // namespace fcp
