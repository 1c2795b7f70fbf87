#include "fcp/report/promise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "fcp/base/error.h"
#include "fcp/conformal/rank.h"
#include "fcp/evaluation/beta.h"
#include "fcp/report/format.h"

namespace fcp {
namespace {

constexpr RegionWords kIntervalWords = {"interval", "intervals", "true value"};
constexpr RegionWords kSetWords = {"set", "sets", "true label"};

template <typename Report>
Claim claim_from(const Report& report, RegionKind kind) {
  if (report.methods.empty()) throw std::invalid_argument("a report without a method");
  const auto& main = report.methods.front();
  return {.kind = kind,
          .method = main.name,
          .level = report.level,
          .confidence = report.confidence,
          .calibration_rows = report.calibration_rows,
          .coverage = main.evaluation.coverage,
          .radius = main.radius,
          .guaranteed = main.guaranteed,
          .detection = main.detection};
}

// The range that holds for this method, where one does.
std::optional<ExpectedCoverage> expected_of(const Claim& claim) {
  if (!claim.guaranteed || !claim.radius || std::isinf(*claim.radius)) return std::nullopt;
  return expected_coverage(claim.level, claim.calibration_rows);
}

}  // namespace

std::optional<ExpectedCoverage> expected_coverage(const Level& level, size_t calibration_rows) {
  const size_t rank = conformal_rank(level, calibration_rows);
  if (rank > calibration_rows) return std::nullopt;
  const auto a = static_cast<double>(rank);
  const auto b = static_cast<double>(calibration_rows + 1 - rank);
  return ExpectedCoverage{beta_quantile(0.05, a, b), beta_quantile(0.95, a, b)};
}

const RegionWords& words_for(RegionKind kind) {
  return kind == RegionKind::kInterval ? kIntervalWords : kSetWords;
}

Claim claim_of(const IntervalReport& report) { return claim_from(report, RegionKind::kInterval); }
Claim claim_of(const LabelReport& report) { return claim_from(report, RegionKind::kLabelSet); }

Verdict coverage_verdict(const Claim& claim) {
  const std::optional<ExpectedCoverage> expected = expected_of(claim);
  if (!expected) return Verdict::kUnknown;
  const Coverage& coverage = claim.coverage;
  if (coverage.upper < expected->low) return Verdict::kTooLow;
  if (coverage.lower > expected->high) return Verdict::kTooHigh;
  return Verdict::kAsExpected;
}

std::string verdict_text(const Claim& claim) {
  const std::optional<ExpectedCoverage> expected = expected_of(claim);
  if (!expected) return "";
  const std::string range =
      concat("With ", format_count(claim.calibration_rows), " calibration rows, the coverage of ",
             "a predictor lies between ", format_percent(expected->low), " and ",
             format_percent(expected->high), " nine times out of ten. ");
  const Coverage& coverage = claim.coverage;
  const std::string observed = concat("the observed ", format_percent(coverage.rate));
  switch (coverage_verdict(claim)) {
    case Verdict::kTooLow:
      return range + "Even the upper end of the confidence interval of " + observed +
             " is less: the test rows are probably not drawn as the calibration rows were.";
    case Verdict::kTooHigh:
      return range + "Even the lower end of the confidence interval of " + observed +
             " is more: many scores may be equal, or the test rows are easier than the "
             "calibration rows.";
    default:
      return range + "Within its confidence interval, " + observed + " agrees with it.";
  }
}

std::string infinite_radius_text(const Claim& claim) {
  if (claim.radius != std::numeric_limits<double>::infinity()) return "";
  const size_t n = claim.calibration_rows;
  const std::string everything =
      concat(claim.kind == RegionKind::kInterval ? "Every interval is the whole line"
                                                 : "Every set holds every label",
             ": it covers always and says nothing. ");
  if (conformal_rank(claim.level, n) > n) {
    return concat(everything, "With α = ", claim.level.text(), " at least ",
                  format_count(least_calibration_rows(claim.level)),
                  " calibration rows are needed, and there are ", format_count(n),
                  ". Calibrate on more rows or choose a larger α.");
  }
  return concat(everything, "More than a share of α = ", claim.level.text(),
                " of the calibration scores are themselves infinite: this score cannot reach those "
                "rows at any radius.");
}

std::vector<std::string> guaranteed_texts(const Claim& claim) {
  const RegionWords& words = words_for(claim.kind);
  if (!claim.guaranteed) {
    return {concat("The ", words.regions, " of ", claim.method,
                   " carry no guarantee: they are others than those whose coverage is calibrated. "
                   "Read the observed coverage only.")};
  }
  std::vector<std::string> texts = {
      concat("A new row's ", words.truth, " lies in its ", words.region,
             " with probability at least ", format_target(claim.level),
             ", if it and the calibration rows are exchangeable (for instance drawn independently "
             "from the same source). The network may be wrong in any way."),
      "The probability is over the draw of the calibration rows and of the new row together: it "
      "holds before the calibration data are seen."};
  const std::optional<ExpectedCoverage> expected = expected_of(claim);
  if (expected) {
    const size_t n = claim.calibration_rows;
    const size_t k = conformal_rank(claim.level, n);
    texts.push_back(concat(
        "Once they are, the coverage of this very predictor is fixed. Over such "
        "draws it follows Beta(",
        k, ", ", n + 1 - k, ") where scores have no ties: between ", format_percent(expected->low),
        " and ", format_percent(expected->high), " nine times out of ten."));
  }
  return texts;
}

std::vector<std::string> not_guaranteed_texts(const Claim& claim) {
  const bool sets = claim.kind == RegionKind::kLabelSet;
  std::vector<std::string> texts = {
      concat("Coverage of ", format_target(claim.level), " for each x",
             sets ? ", for each class" : "",
             " or for each group: it is an average over all rows, and some ",
             sets ? "classes" : "groups", " may lie below it (see coverage by part)."),
      "Anything after the data change: under drift or selection the rows are no longer "
      "exchangeable.",
      concat("Several rows being covered at once, or a row chosen because its ",
             words_for(claim.kind).region, " looks remarkable.")};
  if (sets) {
    texts.push_back(
        "That a set of one label is right: coverage is not promised for each size (see coverage by "
        "size). An empty set is a miss, and says that no label is usual enough.");
    texts.push_back("Small sets: their size depends on the network and the score.");
  } else {
    texts.push_back("Short intervals: their length depends on the network and the score.");
  }
  return texts;
}

}  // namespace fcp
