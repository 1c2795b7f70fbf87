// What conformal prediction promises for a report, in words: the verdict on the observed coverage,
// the guarantee, and what is not guaranteed.
//
// With n calibration rows of continuous scores the coverage of this very predictor is a random
// number that follows Beta(k, n + 1 − k), k = ⌈(1 − α)(n + 1)⌉. Its 5 % and 95 % quantiles say how
// far luck in drawing the calibration rows can take it from 1 − α.
//
// Reference: Vovk, Conditional Validity of Inductive Conformal Predictors, 2012.
// Tested by tests/report/promise_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fcp/conformal/level.h"
#include "fcp/report/interval_report.h"

namespace fcp {

struct ExpectedCoverage {
  double low = 0;   // the 5 % quantile of Beta(k, n + 1 − k)
  double high = 1;  // the 95 % quantile
};

// None where n is zero, or too small for the level.
std::optional<ExpectedCoverage> expected_coverage(const Level& level, size_t calibration_rows);

enum class Verdict { kAsExpected, kTooLow, kTooHigh, kUnknown };

// Whether the confidence interval of the observed coverage meets the expected range. Unknown where
// the method promises nothing or has no single radius.
Verdict coverage_verdict(const IntervalReport& report);
std::string verdict_text(const IntervalReport& report);

// Empty where the main radius is finite; otherwise why it is not, and what to do.
std::string infinite_radius_text(const IntervalReport& report);

std::vector<std::string> guaranteed_texts(const IntervalReport& report);
std::vector<std::string> not_guaranteed_texts(const IntervalReport& report);

}  // namespace fcp
