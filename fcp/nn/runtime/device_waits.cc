#include "fcp/nn/runtime/device_waits.h"

#include "fcp/base/error.h"

namespace fcp {
namespace {

thread_local bool reading_back = true;

}  // namespace

bool may_read_back(const torch::Tensor& computed) { return reading_back && computed.is_cpu(); }

torch::Tensor placed_on(const torch::Tensor& tensor, torch::Device device) {
  const bool waits = !tensor.is_cpu();  // a copy to the CPU has to
  return tensor.to(tensor.options().device(device), /*non_blocking=*/!waits);
}

NoReadingBack::NoReadingBack() : before_(reading_back) { reading_back = false; }
NoReadingBack::~NoReadingBack() { reading_back = before_; }

std::vector<double> HostNumbers::of(const torch::Tensor& constant) {
  const std::lock_guard lock(mutex_);
  if (!source_.is(constant)) {
    const torch::Tensor host = constant.detach().to(torch::kCPU, torch::kDouble).contiguous();
    numbers_.assign(host.data_ptr<double>(), host.data_ptr<double>() + host.numel());
    source_ = KnownTensor(constant);
  }
  return numbers_;
}

double HostNumbers::single(const torch::Tensor& constant) {
  if (constant.numel() != 1)
    fail("a constant has shape ", constant.sizes(), ", expected one number");
  return of(constant)[0];
}

}  // namespace fcp
