// What conformal prediction promises for a report, in words: the verdict on the observed coverage,
// the guarantee, and what is not guaranteed. The law of coverage itself is
// evaluation/coverage_law.h. Tested by tests/report/promise_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/evaluate/measures/coverage_law.h"
#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"

namespace fcp {

enum class RegionKind { kInterval, kLabelSet, kPixels };

// How a region and what it should hold are called.
struct RegionWords {
  std::string_view region;   // "interval"
  std::string_view regions;  // "intervals"
  std::string_view truth;    // "true value"
  std::string_view rows;     // "rows"
};
const RegionWords& words_for(RegionKind kind);

// The main method of a report as far as its promise goes, whatever the regions are.
struct Claim {
  RegionKind kind = RegionKind::kInterval;
  std::string method;
  Level level = Level(0.1);
  double confidence = 0.95;
  size_t calibration_rows = 0;
  size_t folds = 0;  // cross: see EvaluationReport
  Coverage coverage;
  std::optional<double> radius;
  bool guaranteed = true;
  std::optional<Coverage> detection;
  std::vector<GuaranteedGroup> groups;  // each with a guarantee of its own
  std::optional<double> p_value;        // of a coverage this low (coverage_law.h)
  RowsOrigin origin = RowsOrigin::kUnknown;
  double rows_alike = 1;    // see EvaluationReport
  bool classes = false;     // the groups are the true labels
  bool targets = false;     // each target has a radius of its own, and is such a group
  double pixel_share = 1;   // images: of the pixels that must be in
  bool pixel_sets = false;  // images: sets of labels, otherwise bands
};

// Throws std::invalid_argument where the report has no method.
Claim claim_of(const EvaluationReport& report);

enum class Verdict { kAsExpected, kTooLow, kTooHigh, kUnknown };

// Whether the confidence interval of the observed coverage meets the expected range; where groups
// have radii of their own, whether the p-value over all of them is at least 0.001; of cross,
// whether it reaches what is guaranteed. Unknown where no law of coverage is known, and of rows
// that trained or calibrated.
Verdict coverage_verdict(const Claim& claim);
// Whether every set is the network's single answer, which covers as often as it is right.
bool single_answers(const Claim& claim);
std::string verdict_text(const Claim& claim);

// For scripts: "as expected", "too low", "too high", "unknown".
std::string_view verdict_name(Verdict verdict);

// For the console: empty where coverage is as expected, or no law of it is known; otherwise the
// verdict, with the probability of a coverage this low.
std::string alarm_text(const Claim& claim);

// Whether the rows trained or calibrated the predictor, so that they say nothing about new ones.
bool seen_rows(const Claim& claim);

// What is guaranteed: 1 - alpha; of cross less.
double guaranteed_rate(const Claim& claim);
// "at least 71.3 % is guaranteed (cross), near 90 % is usual".
std::string cross_words(const Claim& claim);

// Empty where the radius is finite; otherwise why it is not, and what to do.
std::string infinite_radius_text(const Claim& claim);

std::vector<std::string> guaranteed_texts(const Claim& claim);
std::vector<std::string> not_guaranteed_texts(const Claim& claim);

}  // namespace fcp
