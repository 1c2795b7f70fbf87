// What a build without CUDA has of conv_back_cuda.h.
#include "fcp/base/error.h"
#include "fcp/nn/kernels/cuda/conv_back_cuda.h"

namespace fcp {

bool takes_conv_back_cuda(const torch::Tensor&, const torch::Tensor&, const ConvPlan&) {
  return false;
}

torch::Tensor conv_back_cuda(const torch::Tensor&, const torch::Tensor&, const ConvPlan&, int64_t,
                             int64_t) {
  fail("this build of fcp has no CUDA convolution");
}

}  // namespace fcp
