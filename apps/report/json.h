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

#include <nlohmann/json_fwd.hpp>

#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"

namespace fcp {

nlohmann::ordered_json json_number(double value);

// The text, indented by two. Names that are not UTF-8 (a CSV file may be anything) do not fail.
std::string json_text(const nlohmann::ordered_json& json);

nlohmann::ordered_json evaluation_json(const IntervalEvaluation& evaluation, const Level& level);
nlohmann::ordered_json evaluation_json(const SetEvaluation& evaluation, const Level& level);

// [{alpha, radius, rows, covered, coverage, coverage_low, coverage_high}, …]
nlohmann::ordered_json curve_json(std::span<const CurvePoint> curve);

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
