// What a build without CUDA has of relu_range_cuda.h.
#include "fcp/base/error.h"
#include "fcp/nn/kernels/relu_mlp/relu_range_cuda.h"

namespace fcp {

bool takes_relu_range_cuda(const ReluHead&) { return false; }

ReluRangeCuda::ReluRangeCuda(const ReluHead&, const std::vector<float>&, double widening)
    : widening_(widening) {
  fail("this build of fcp has no CUDA ranges");
}

torch::Tensor ReluRangeCuda::radii_reaching(const torch::Tensor&, const torch::Tensor&) const {
  fail("this build of fcp has no CUDA ranges");
}

torch::Tensor ReluRangeCuda::ranges_at(const torch::Tensor&, const torch::Tensor&) const {
  fail("this build of fcp has no CUDA ranges");
}

}  // namespace fcp
