// Evaluations as JSON, for scripts.
//
// Names that scripts rely on: `coverage` is a fraction in [0, 1] and stands between `coverage_low`
// and `coverage_high`, `length` is the mean over rows and outputs, `size` that of label sets. An
// infinite number is the string "inf" or "-inf", an undefined one is null: the text is valid JSON,
// always.
// Tested by tests/report/json_test.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"

namespace fcp {

nlohmann::ordered_json json_number(double value);

// The text, indented by two. Names that are not UTF-8 (a CSV file may be anything) do not fail.
std::string json_text(const nlohmann::ordered_json& json);

// What an evaluation does not know itself.
struct JsonNames {
  std::vector<std::string> outputs = {};  // empty: they are numbered
  double confidence = 0.95;
};
nlohmann::ordered_json evaluation_json(const IntervalEvaluation& evaluation, const Level& level,
                                       const JsonNames& names = {});
nlohmann::ordered_json evaluation_json(const SetEvaluation& evaluation, const Level& level);

// The names of the outputs: those of the report, otherwise "output 0", …
std::vector<std::string> output_names(const EvaluationReport& report);

// The coverage of one output alone, with its confidence interval.
Coverage output_coverage(const IntervalEvaluation& evaluation, size_t output, double confidence);

// [{alpha, radius, rows, covered, coverage, coverage_low, coverage_high}, …], and with calibration
// rows `expected_low` and `expected_high`: the 5 % and 95 % quantiles of Beta(k, n + 1 − k), the
// coverage of a predictor calibrated on so many.
nlohmann::ordered_json curve_json(std::span<const CurvePoint> curve, size_t calibration_rows = 0);

// The main method's numbers at the top, with `method` and `radius`; the other methods likewise in
// `others`; calibration_rows, provenance and notes. Labels have `top1`, `top5` and `class_names`
// where they are known. Of images, `coverage` and `joint_coverage` are rates of images,
// `pixel_coverage` and `value_coverage` mean shares of an image, and sets have `size` in place of
// `length`. Scores, lengths and examples are left out.
//
// `p_coverage` is the probability of a coverage this low where test rows are drawn as the
// calibration rows were (coverage_law.h), null where no law of it is known; `verdict` is "as
// expected", "too low", "too high" or "unknown". `guaranteed_groups` are those with a radius of
// their own. Throws std::invalid_argument where the report has no method.
nlohmann::ordered_json report_json(const EvaluationReport& report);

}  // namespace fcp
