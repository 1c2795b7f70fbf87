// The fast path of `nested` for heads Linear–ReLU–Linear on a CUDA device: relu_nested.h by the
// kernels of fcp/bounds/relu_range_cuda.h, one launch for the scores of a batch and one for its
// regions. Score and region ask the same function of the device for the ends, so that the law is
// exact there too. The bits differ from the CPU's.
//
// The rule: as in relu_nested.h, with a head that fits the kernels.
// Tested by tests/scores/cuda_test.cc, which needs a CUDA device.
#pragma once

#include <memory>

#include "fcp/network/relu_head.h"
#include "fcp/scores/score.h"

namespace fcp {

// The fast path before `general`, or `general` itself where the rule does not hold.
std::unique_ptr<Score> with_relu_nested_cuda(const ScoreOptions& options, const ReluHead& head,
                                             std::unique_ptr<Score> general);

}  // namespace fcp
