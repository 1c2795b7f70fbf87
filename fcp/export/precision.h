// How much of the ends of an interval single precision loses.
//
// fcp and another runtime compute the ends of an exported interval in the network's precision, each
// with roundings of its own. Where a ball is so small beside the feature that v ± r keeps few
// digits of r, or where a head makes much of a roundoff, they disagree by more than the slack of an
// export pays for (export.h), inwards too. The loss is measured on an example feature, where the
// ends are computed in both precisions:
//
//   loss = max |e₃₂ − e₆₄| / max |e₆₄|        over the numbers of an output and both ends
//
// Ends that overflow single precision are infinite in every runtime, which only widens an interval,
// and are left out. Assumes that the example is like other features in size. 0 for networks in
// double precision. Cost: two walks of one row.
// Tested by tests/export/precision_test.cc.
#pragma once

#include "fcp/bounds/walk.h"

namespace fcp {

// Beyond it an export is refused. The slack is 2^-17, and rounding loses about 2^-20.
constexpr double kMostLoss = 0x1p-13;

// Of output number `output` at one radius. The ball [1, …] is one that prepare_ball gave.
double precision_loss(const PreparedHead& head, const Ball& ball, double radius, size_t output);

}  // namespace fcp
