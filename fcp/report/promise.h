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
#include <string_view>
#include <vector>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/coverage.h"
#include "fcp/report/interval_report.h"
#include "fcp/report/label_report.h"

namespace fcp {

struct ExpectedCoverage {
  double low = 0;   // the 5 % quantile of Beta(k, n + 1 − k)
  double high = 1;  // the 95 % quantile
};

// None where n is zero, or too small for the level.
std::optional<ExpectedCoverage> expected_coverage(const Level& level, size_t calibration_rows);

enum class RegionKind { kInterval, kLabelSet };

// How a region and what it should hold are called.
struct RegionWords {
  std::string_view region;   // "interval"
  std::string_view regions;  // "intervals"
  std::string_view truth;    // "true value"
};
const RegionWords& words_for(RegionKind kind);

// The main method of a report as far as its promise goes, whatever the regions are.
struct Claim {
  RegionKind kind = RegionKind::kInterval;
  std::string method;
  Level level = Level(0.1);
  double confidence = 0.95;
  size_t calibration_rows = 0;
  Coverage coverage;
  std::optional<double> radius;
  bool guaranteed = true;
  std::optional<Coverage> detection;
};

// Throws std::invalid_argument where the report has no method.
Claim claim_of(const IntervalReport& report);
Claim claim_of(const LabelReport& report);

enum class Verdict { kAsExpected, kTooLow, kTooHigh, kUnknown };

// Whether the confidence interval of the observed coverage meets the expected range. Unknown where
// the method promises nothing or has no single radius.
Verdict coverage_verdict(const Claim& claim);
std::string verdict_text(const Claim& claim);

// Empty where the radius is finite; otherwise why it is not, and what to do.
std::string infinite_radius_text(const Claim& claim);

std::vector<std::string> guaranteed_texts(const Claim& claim);
std::vector<std::string> not_guaranteed_texts(const Claim& claim);

}  // namespace fcp
