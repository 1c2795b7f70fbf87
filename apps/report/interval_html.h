// The page of a report on prediction intervals; see html.h.
#pragma once

#include <string>

#include "fcp/evaluate/measures/evaluation_report.h"

namespace fcp {

std::string interval_page(const EvaluationReport& report);

}  // namespace fcp
