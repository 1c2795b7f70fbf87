#include "fcp/nn/kernels/relu_mlp/relu_descent_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/relu_mlp/relu_descent_kernel.h"

namespace fcp {

torch::Tensor relu_descent_cuda(const torch::Tensor& hidden, const torch::Tensor& truth,
                                const torch::Tensor& gram, const torch::Tensor& weight, double bias,
                                int steps, double rate) {
  const int64_t units = hidden.size(1);
  if (units > kReluDescentUnits) fail("the CUDA search takes 64 hidden units at most, not ", units);
  const int64_t padded = units <= 32 ? 32 : 64;
  const int64_t extra = padded - units;
  const c10::cuda::CUDAGuard device(hidden.device());
  // A padded unit has p = 0 and no weight: it is never on.
  const torch::Tensor p = torch::constant_pad_nd(hidden, {0, extra}).contiguous();
  const torch::Tensor k = torch::constant_pad_nd(gram, {0, extra, 0, extra}).contiguous();
  const torch::Tensor w = torch::constant_pad_nd(weight, {0, extra}).contiguous();
  const torch::Tensor y = truth.contiguous();
  const torch::Tensor total = torch::empty_like(p);
  ReluDescent descent;
  descent.hidden = p.data_ptr<float>();
  descent.truth = y.data_ptr<float>();
  descent.gram = k.data_ptr<float>();
  descent.weight = w.data_ptr<float>();
  descent.bias = static_cast<float>(bias);
  descent.double_rate = static_cast<float>(2 * rate);
  descent.steps = steps;
  descent.rows = p.size(0);
  descent.units = static_cast<int>(padded);
  descent.total = total.data_ptr<float>();
  const char* wrong = launch_relu_descent(descent, c10::cuda::getCurrentCUDAStream().stream());
  if (wrong) fail("the CUDA search could not start: ", wrong);
  return total.narrow(1, 0, units);
}

}  // namespace fcp
