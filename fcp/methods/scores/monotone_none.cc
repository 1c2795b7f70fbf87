// What a build without CUDA has of monotone_cuda.h.
#include "fcp/base/error.h"
#include "fcp/methods/scores/monotone_cuda.h"

namespace fcp {
namespace {

[[noreturn]] void fail_without_cuda() { fail("this build of fcp has no CUDA scores"); }

}  // namespace

bool has_monotone_cuda() { return false; }

std::vector<double> scores_cuda(const MovedCuda&, const torch::Tensor&) { fail_without_cuda(); }
std::vector<double> scores_cuda(const GrownCuda&, const torch::Tensor&) { fail_without_cuda(); }
Regions regions_cuda(const MovedCuda&, const torch::Tensor&) { fail_without_cuda(); }
Regions regions_cuda(const GrownCuda&, const torch::Tensor&) { fail_without_cuda(); }

}  // namespace fcp
