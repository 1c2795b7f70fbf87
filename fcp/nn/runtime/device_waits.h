// What keeps a walk over a network from waiting for the device that it runs on.
//
// A walk may look at numbers it has just computed in order to compute fewer: to pick out those that
// need more work, or to skip what is 0. On the CPU looking costs nothing. A device would have to be
// waited for, and stand idle meanwhile, so that there everything is computed, in shapes that do not
// depend on the numbers, and selected by masks.
//
// Both forms are sound. They differ by the rounding of sums that are taken in another order, and by
// what a library's functions make of the last bit. Tested by tests/bounds/device_waits_test.cc.
#pragma once

#include <mutex>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {

bool may_read_back(const torch::Tensor& computed);

// On the device, without waiting for a copy from the CPU to end: ordinary memory has been read by
// then.
torch::Tensor placed_on(const torch::Tensor& tensor, torch::Device device);

// While it lives, walks of this thread do on the CPU what they do on a device: for tests.
class NoReadingBack {
 public:
  NoReadingBack();
  ~NoReadingBack();
  NoReadingBack(const NoReadingBack&) = delete;
  NoReadingBack& operator=(const NoReadingBack&) = delete;

 private:
  bool before_;
};

// The numbers of a constant that an operator wants on the host, such as the limits of Clip: read
// once, since the same constant is asked about in every walk.
class HostNumbers {
 public:
  std::vector<double> of(const torch::Tensor& constant);
  double single(const torch::Tensor& constant);  // an Error where there are not one

 private:
  std::mutex mutex_;
  KnownTensor source_;
  std::vector<double> numbers_;
};

}  // namespace fcp
