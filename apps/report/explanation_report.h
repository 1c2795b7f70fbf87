// What explain found (fcp/evaluate/explain.h): as text, as JSON, and as a page with a chart.
//
// JSON: `rows`, `alpha`, `mean_length` (`mean_size` of labels), `means` ("training" or "rows"),
// `unit` (of the prediction's change), `columns` with `column`, `prediction` and `length`, and,
// where rows were looked at, `widest` with `row`, `length` and `widened_by`, pairs of `column` and
// `by`. Tested by tests/cli/test_predict.py.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fcp/evaluate/measures/evaluation_report.h"

namespace fcp {

std::string explanation_text(const Explanation& explanation);
nlohmann::ordered_json explanation_json(const Explanation& explanation);

// `provenance` as pairs for the end of the page.
std::string explanation_html(const Explanation& explanation,
                             const std::vector<std::pair<std::string, std::string>>& provenance);

}  // namespace fcp
