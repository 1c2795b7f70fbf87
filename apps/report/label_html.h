// The page of a report on label sets; see html.h.
#pragma once

#include <string>

#include "fcp/evaluate/measures/evaluation_report.h"

namespace fcp {

std::string label_page(const EvaluationReport& report);

}  // namespace fcp
