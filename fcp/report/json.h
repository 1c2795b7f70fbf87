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

#include "fcp/conformal/level.h"
#include "fcp/evaluation/coverage.h"
#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/evaluation/set_evaluation.h"
#include "fcp/report/interval_report.h"
#include "fcp/report/label_report.h"

namespace fcp {

nlohmann::ordered_json json_number(double value);

// The text, indented by two. Names that are not UTF-8 (a CSV file may be anything) do not fail.
std::string json_text(const nlohmann::ordered_json& json);

nlohmann::ordered_json evaluation_json(const IntervalEvaluation& evaluation, const Level& level);
nlohmann::ordered_json evaluation_json(const SetEvaluation& evaluation, const Level& level);

// [{alpha, radius, rows, covered, coverage, coverage_low, coverage_high}, …]
nlohmann::ordered_json curve_json(std::span<const CurvePoint> curve);

// The main method's numbers at the top, with `method` and `radius`; the other methods likewise in
// `others`; calibration_rows, provenance and notes. Scores, lengths and sample rows are left out.
nlohmann::ordered_json interval_report_json(const IntervalReport& report);

// The same for label sets, with `top1` and `top5` where they are known, and `class_names`. Scores
// and examples are left out.
nlohmann::ordered_json label_report_json(const LabelReport& report);

}  // namespace fcp
