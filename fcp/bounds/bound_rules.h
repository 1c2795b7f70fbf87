// How ranges go forwards through one operator, whatever it is; linear_step.h goes backwards. Which
// rule applies, Op::bound_rule says; what is particular to an operator stands beside its forward().
//
// Rounding. The network computes in its own precision, with roundoff u, and what it computes must
// be inside. An affine operator of n terms computes Wx + b + e with |e| ≤ γ (|W||x| + |b|), where
// γ = ku / (1 − ku) and k = n + 2 whatever the order of summation (Higham, "Accuracy and Stability
// of Numerical Algorithms", §3.1); an evaluated curve is off by a few units. Both are intervals
// known from the input's range, and are added as such. The walk itself runs in double precision,
// and its own rounding, of the same form but 2⁻²⁹ of the size, is covered by one more unit in k.
// unit = 0 leaves all this out.
//
// Tested by tests/bounds/.
#pragma once

#include <vector>

#include "fcp/nn/ops/op.h"

namespace fcp {

// Not a range: the tensor is absent, or the same for all features.
inline bool is_constant(const Range& range) {
  return !range.lower.defined() || range.lower.is_same(range.upper);
}

// Lower ends, or upper ones. A constant is both.
Tensors lower_ends(const std::vector<Range>& ranges);
Tensors upper_ends(const std::vector<Range>& ranges);

// The outputs' ranges. `known`, where given, is the range of the only output in plain arithmetic.
std::vector<Range> interval_of(const Op& op, BoundRule rule, const std::vector<Range>& inputs,
                               double unit, const Range* known = nullptr);

// kAffine: what rounding may add to each output, γ (|W||x| + |b|); empty: nothing.
Tensors affine_errors(const Op& op, const std::vector<Range>& inputs, double unit);

}  // namespace fcp
