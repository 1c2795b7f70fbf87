// What a build without CUDA has of device_speed.h.
#include "fcp/search/device_speed.h"

namespace fcp {

bool has_fast_doubles(torch::Device) { return false; }

}  // namespace fcp
