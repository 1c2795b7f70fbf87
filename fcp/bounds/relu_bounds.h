// The fast path of ibp for heads Linear–ReLU–Linear: relu_range.h behind the interface of bounds.h,
// one pass over the rows for each question and nothing in between. Equal to the walk up to
// rounding.
//
// The rule: ibp without outward rounding, float32 on the CPU, and every output of the head such a
// head. Features of another shape than those heads take go to the general bounds, which say what is
// wrong; so do rows whose hidden units would take more than a quarter of the memory allowed.
// Tested by tests/bounds/relu_range_test.cc.
#pragma once

#include <memory>

#include "fcp/bounds/bounds.h"
#include "fcp/bounds/walk.h"

namespace fcp {

// The fast path before `general`, or `general` itself where the rule does not hold.
std::unique_ptr<HeadBounds> with_relu_bounds(const PreparedHead& head, const BoundOptions& options,
                                             std::unique_ptr<HeadBounds> general);

}  // namespace fcp
