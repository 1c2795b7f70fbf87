// What a build without CUDA has of relu_descent_cuda.h.
#include "fcp/base/error.h"
#include "fcp/nn/kernels/relu_mlp/relu_descent_cuda.h"

namespace fcp {

bool has_relu_descent_cuda() { return false; }

torch::Tensor relu_descent_cuda(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                                const torch::Tensor&, double, int, double) {
  fail("this build of fcp has no CUDA search");
}

}  // namespace fcp
