#include "cli/print_report.h"

#include <iostream>

#include "fcp/base/output_file.h"
#include "fcp/evaluation/coverage_law.h"
#include "fcp/report/console.h"
#include "fcp/report/html.h"
#include "fcp/report/json.h"

namespace fcp {

void add_fail_below(CLI::App& verb, ReportFlags& flags) {
  verb.add_option("--fail-below", flags.fail_below,
                  "Exit with code 3 where a coverage this low has a probability below this, if "
                  "the rows are drawn as the calibration rows were")
      ->check(CLI::Range(0.0, 1.0));
}

void tell_report(const EvaluationReport& report, const ReportFlags& flags,
                 const CommonOptions& common) {
  if (common.ranks->rank() != 0) return;
  const std::optional<double> p_value = coverage_p_value(report);
  if (flags.fail_below && !p_value) {
    fail_option("fail_below",
                "no law of this coverage is known; it takes regions that obey the law, and one "
                "finite radius, or one for each group of the data");
  }
  if (!flags.html.empty()) write_file(flags.html, report_html(report));
  for (const std::string& note : report.notes) say(common, "warning: " + note);
  if (common.json) {
    std::cout << json_text(report_json(report)) << '\n';
  } else {
    print_report(std::cout, report);
    if (!flags.html.empty()) std::cout << "report: " << flags.html << '\n';
  }
  if (flags.fail_below && *p_value < *flags.fail_below) common.alarm();
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
