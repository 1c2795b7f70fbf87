#include "apps/report/html.h"

#include <stdexcept>

#include "apps/report/interval_html.h"
#include "apps/report/label_html.h"
#include "apps/report/pixel_html.h"

namespace fcp {

std::string report_html(const EvaluationReport& report) {
  if (report.methods.empty()) throw std::invalid_argument("a report without a method");
  const Evaluation& main = report.methods.front().evaluation;
  if (std::holds_alternative<IntervalEvaluation>(main)) return interval_page(report);
  if (std::holds_alternative<SetEvaluation>(main)) return label_page(report);
  return pixel_page(report);
}

}  // namespace fcp
