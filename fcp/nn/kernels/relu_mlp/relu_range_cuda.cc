#include "fcp/nn/kernels/relu_mlp/relu_range_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/relu_mlp/relu_range_kernel.h"

namespace fcp {
namespace {

void check_launch(const char* wrong) {
  if (wrong) fail("the CUDA range could not start: ", wrong);
}

}  // namespace

bool takes_relu_range_cuda(const ReluHead& head) {
  return head.w1.is_cuda() && fits_relu_range(head.w1.size(0), head.w2.size(0));
}

ReluRangeCuda::ReluRangeCuda(const ReluHead& head, const std::vector<float>& moves, double widening)
    : w1_(head.w1.t().contiguous()),
      b1_(head.b1.contiguous()),
      w2_(head.w2.contiguous()),
      b2_(head.b2.contiguous()),
      moves_(torch::tensor(moves, torch::kFloat).to(head.w1.device())),
      widening_(widening) {}

namespace {

DeviceReluRange device_range(const torch::Tensor& features, const torch::Tensor& w1,
                             const torch::Tensor& b1, const torch::Tensor& w2,
                             const torch::Tensor& b2, const torch::Tensor& moves, double widening) {
  DeviceReluRange range;
  range.features = features.data_ptr<float>();
  range.w1 = w1.data_ptr<float>();
  range.b1 = b1.data_ptr<float>();
  range.w2 = w2.data_ptr<float>();
  range.b2 = b2.data_ptr<float>();
  range.moves = moves.data_ptr<float>();
  range.widening = widening;
  range.rows = features.size(0);
  range.width = static_cast<int>(w1.size(0));
  range.hidden = static_cast<int>(w1.size(1));
  range.outputs = static_cast<int>(w2.size(0));
  return range;
}

}  // namespace

torch::Tensor ReluRangeCuda::radii_reaching(const torch::Tensor& features,
                                            const torch::Tensor& truth) const {
  const c10::cuda::CUDAGuard device(w1_.device());
  const torch::Tensor v = features.contiguous(), y = truth.contiguous();
  const torch::Tensor radius = torch::empty({v.size(0)}, y.options());
  check_launch(launch_relu_radii(device_range(v, w1_, b1_, w2_, b2_, moves_, widening_),
                                 y.data_ptr<double>(), radius.data_ptr<double>(),
                                 c10::cuda::getCurrentCUDAStream().stream()));
  return radius;
}

torch::Tensor ReluRangeCuda::ranges_at(const torch::Tensor& features,
                                       const torch::Tensor& radius) const {
  const c10::cuda::CUDAGuard device(w1_.device());
  const torch::Tensor v = features.contiguous(), r = radius.contiguous();
  const torch::Tensor ends = torch::empty({3, v.size(0), w2_.size(0)}, r.options());
  check_launch(launch_relu_ranges(device_range(v, w1_, b1_, w2_, b2_, moves_, widening_),
                                  r.data_ptr<double>(), ends.data_ptr<double>(),
                                  c10::cuda::getCurrentCUDAStream().stream()));
  return ends;
}

}  // namespace fcp
