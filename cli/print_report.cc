#include "cli/print_report.h"

#include <iostream>

#include "fcp/report/console.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

namespace fcp {

void print_methods(const IntervalReport& report) {
  for (const MethodResult& method : report.methods) {
    std::cout << (&method == &report.methods.front() ? "" : "\n") << method.name << '\n';
    if (method.detection) {
      std::cout << "detection       " << format_percent(method.detection->rate)
                << "  scores within the radius: what is guaranteed, but not of the intervals\n";
    }
    print_evaluation(std::cout, method.evaluation, {.level = report.level});
  }
}

void print_methods(const LabelReport& report) {
  for (const LabelMethodResult& method : report.methods) {
    std::cout << (&method == &report.methods.front() ? "" : "\n") << method.name << '\n';
    if (method.top1) {
      std::cout << "top-1, top-5    " << format_percent(*method.top1) << ", "
                << format_percent(*method.top5) << '\n';
    }
    if (method.detection) {
      std::cout << "detection       " << format_percent(method.detection->rate)
                << "  scores within the radius: what is guaranteed, but not of the sets\n";
    }
    print_evaluation(std::cout, method.evaluation, {.level = report.level});
  }
}

nlohmann::ordered_json radius_json(const CalibrationArtifact& artifact, const Level& level) {
  const std::vector<double> radius = artifact.radius(level);
  if (radius.empty()) return nullptr;
  if (radius.size() == 1) return json_number(radius[0]);
  nlohmann::ordered_json sides = nlohmann::ordered_json::array();
  for (const double side : radius) sides.push_back(json_number(side));
  return sides;
}

}  // namespace fcp
