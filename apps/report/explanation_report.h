// What explain found (fcp/evaluate/explain.h): as text, as JSON, and as a page with a chart.
//
// JSON: `rows`, `alpha`, `mean_length` (`mean_size` of labels), `means` ("training" or "rows"),
// `columns` with `column`, `prediction` and `length`, and `widest` with `row`, `length` and
// `widened_by`, pairs of `column` and `by`. Tested by tests/cli/test_predict.py.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fcp/evaluate/measures/explanation.h"

namespace fcp {

std::string explanation_text(const Explanation& explanation);
nlohmann::ordered_json explanation_json(const Explanation& explanation);

// `provenance` as pairs for the end of the page.
std::string explanation_html(const Explanation& explanation,
                             const std::vector<std::pair<std::string, std::string>>& provenance);

// Bars of the columns' importance for the prediction and for the length, each of its largest.
std::string importance_chart(const Explanation& explanation);

}  // namespace fcp
