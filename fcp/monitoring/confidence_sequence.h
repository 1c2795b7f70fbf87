// A confidence interval of a rate that may be looked at after every row.
//
// For rows that are hit independently with a constant probability θ, the mixture of likelihood
// ratios over the Jeffreys law,
//
//   M_t(θ) = B(S + ½, F + ½) / B(½, ½) / (θ^S (1 − θ)^F),   S hits, F misses,
//
// is a martingale at the true θ, hence by Ville P(θ ∉ {θ : M_t(θ) < 1/δ} for some t) ≤ δ: the
// interval holds at all times at once, also at the time at which someone decides to stop. It is
// wider than an interval for one fixed time by a factor of about √(ln t) in the tails.
//
// Where the rate changes with time this is an interval of no one number; the tests of coverage
// (coverage_alarm.h) do not rest on it.
//
// References: Ville 1939; Robbins, Statistical methods related to the law of the iterated
// logarithm, 1970. O(1) per row, a bisection per interval.
// Tested by tests/monitoring/confidence_sequence_test.cc.
#pragma once

#include <cstddef>

#include "fcp/interval.h"

namespace fcp {

// Of `hits` among `rows`; 0 < delta < 1. [0, 1] without rows.
Interval rate_sequence(size_t hits, size_t rows, double delta);

}  // namespace fcp
