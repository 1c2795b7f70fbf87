// The fast path of `nested` for heads Linear–ReLU–Linear: score and band of a row in one pass over
// its hidden units (fcp/bounds/relu_range.h). The radius is the smallest float32 one, as in the
// general score, and both halves ask the same function for the ends, so that the law is exact here
// too. Scores differ from the general ones by rounding only.
//
// The rule: ibp without outward rounding, a float32 head of that shape on the CPU, and memory for
// the hidden units of a block of rows. On a CUDA device relu_nested_cuda.h takes over. Features or
// targets of other shapes go to the general score, which says what is wrong.
// Tested by tests/scores/law_test.cc and nested_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

// The fast path before `general`, or `general` itself where the rule does not hold. `output` is the
// index of the head's output that predicts.
std::unique_ptr<Score> with_relu_nested(const ScoreOptions& options, const Network& head,
                                        size_t output, std::unique_ptr<Score> general);

}  // namespace fcp
