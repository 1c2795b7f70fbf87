#include "fcp/report/promise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/conformal/rank.h"
#include "fcp/evaluation/beta.h"
#include "fcp/report/format.h"

namespace fcp {
namespace {

bool has_infinite_radius(const IntervalReport& report) {
  return report.methods.front().radius == std::numeric_limits<double>::infinity();
}

// The range that holds for the main method of this report, where one does.
std::optional<ExpectedCoverage> expected_of(const IntervalReport& report) {
  const MethodResult& main = report.methods.front();
  if (!main.guaranteed || !main.radius || std::isinf(*main.radius)) return std::nullopt;
  return expected_coverage(report.level, report.calibration_rows);
}

}  // namespace

std::optional<ExpectedCoverage> expected_coverage(const Level& level, size_t calibration_rows) {
  const size_t rank = conformal_rank(level, calibration_rows);
  if (rank > calibration_rows) return std::nullopt;
  const auto a = static_cast<double>(rank);
  const auto b = static_cast<double>(calibration_rows + 1 - rank);
  return ExpectedCoverage{beta_quantile(0.05, a, b), beta_quantile(0.95, a, b)};
}

Verdict coverage_verdict(const IntervalReport& report) {
  const std::optional<ExpectedCoverage> expected = expected_of(report);
  if (!expected) return Verdict::kUnknown;
  const Coverage& coverage = report.methods.front().evaluation.coverage;
  if (coverage.upper < expected->low) return Verdict::kTooLow;
  if (coverage.lower > expected->high) return Verdict::kTooHigh;
  return Verdict::kAsExpected;
}

std::string verdict_text(const IntervalReport& report) {
  const std::optional<ExpectedCoverage> expected = expected_of(report);
  if (!expected) return "";
  const std::string range =
      concat("With ", format_count(report.calibration_rows), " calibration rows, the coverage of ",
             "a predictor lies between ", format_percent(expected->low), " and ",
             format_percent(expected->high), " nine times out of ten. ");
  const Coverage& coverage = report.methods.front().evaluation.coverage;
  const std::string observed = concat("the observed ", format_percent(coverage.rate));
  switch (coverage_verdict(report)) {
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

std::string infinite_radius_text(const IntervalReport& report) {
  if (!has_infinite_radius(report)) return "";
  const size_t n = report.calibration_rows;
  const std::string everything =
      "Every interval is the whole line: it covers always and says nothing. ";
  if (conformal_rank(report.level, n) > n) {
    return concat(everything, "With α = ", report.level.text(), " at least ",
                  format_count(least_calibration_rows(report.level)),
                  " calibration rows are needed, and there are ", format_count(n),
                  ". Calibrate on more rows or choose a larger α.");
  }
  return concat(everything, "More than a share of α = ", report.level.text(),
                " of the calibration scores are themselves infinite: this score cannot reach those "
                "rows at any radius.");
}

std::vector<std::string> guaranteed_texts(const IntervalReport& report) {
  const MethodResult& main = report.methods.front();
  if (!main.guaranteed) {
    return {concat("The intervals of ", main.name,
                   " carry no guarantee: they are another set than "
                   "the one whose coverage is calibrated. Read the observed coverage only.")};
  }
  std::vector<std::string> texts = {
      concat("A new row's true value lies in its interval with probability at least ",
             format_target(report.level),
             ", if it and the calibration rows are exchangeable (for instance drawn independently "
             "from the same source). The network may be wrong in any way."),
      "The probability is over the draw of the calibration rows and of the new row together: it "
      "holds before the calibration data are seen."};
  const std::optional<ExpectedCoverage> expected = expected_of(report);
  if (expected) {
    const size_t n = report.calibration_rows;
    const size_t k = conformal_rank(report.level, n);
    texts.push_back(concat(
        "Once they are, the coverage of this very predictor is fixed. Over such "
        "draws it follows Beta(",
        k, ", ", n + 1 - k, ") where scores have no ties: between ", format_percent(expected->low),
        " and ", format_percent(expected->high), " nine times out of ten."));
  }
  return texts;
}

std::vector<std::string> not_guaranteed_texts(const IntervalReport& report) {
  return {concat("Coverage of ", format_target(report.level),
                 " for each x or for each group: it is an average over all rows, and some groups "
                 "may lie below it (see coverage by part)."),
          "Anything after the data change: under drift or selection the rows are no longer "
          "exchangeable.",
          "Several rows being covered at once, or a row chosen because its interval looks "
          "remarkable.",
          "Short intervals: their length depends on the network and the score."};
}

}  // namespace fcp
