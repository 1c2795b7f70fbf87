#include "apps/cli/print_report.h"

#include <iostream>

#include <unistd.h>

#include "fcp/base/output_file.h"
#include "fcp/evaluate/measures/coverage_law.h"

#include "apps/report/choices_text.h"
#include "apps/report/console.h"
#include "apps/report/format.h"
#include "apps/report/html.h"
#include "apps/report/json.h"

namespace fcp::cli {

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

namespace {

// Of all scores, the levels that people ask for first.
std::vector<Level> shown_levels(const CalibrationArtifact& artifact) {
  if (!artifact.method.calibration.traits().one_radius) return {};
  if (!artifact.rows.levels.empty()) {
    return {artifact.rows.levels.rbegin(), artifact.rows.levels.rend()};
  }
  return {Level::parse("0.2"), Level::parse("0.1"), Level::parse("0.05"), Level::parse("0.01")};
}

void print_calibrated(const CalibrationArtifact& artifact, const std::string& out,
                      const CommonOptions& common, const nlohmann::ordered_json& more) {
  const std::vector<Level> levels = shown_levels(artifact);
  const bool images = artifact.method.score.pixels > 0;
  if (common.json) {
    nlohmann::ordered_json json = {{images ? "images" : "rows", artifact.rows.count()},
                                   {"score", artifact.method.score.name()},
                                   {"calibration", artifact.method.calibration.name()}};
    json.update(more);
    json["cut"] = artifact.method.cut;
    json["out"] = out;
    for (const Level& level : levels) json["radius"][level.text()] = radius_json(artifact, level);
    std::cout << json_text(json) << '\n';
    return;
  }
  std::cout << "calibrated on " << format_count(artifact.rows.count(), images ? "image" : "row")
            << " with score " << artifact.method.score.name();
  if (images && artifact.method.score.pixels < 1) {
    std::cout << " of " << format_percent(artifact.method.score.pixels) << " of the pixels";
  }
  if (!artifact.method.calibration.traits().one_radius)
    std::cout << ", " << artifact.method.calibration.name();
  std::cout << ": " << out << (levels.empty() ? "" : "\nradius");
  for (const Level& level : levels) {
    std::cout << "  " << format_target(level) << ':';
    for (const double radius : artifact.radius(level)) std::cout << ' ' << format_number(radius);
  }
  std::cout << '\n';
}

}  // namespace

void finish_calibration(const CalibrateResult& result, const CalibrateSettings& settings,
                        const std::string& out, const CommonOptions& common,
                        const nlohmann::ordered_json& more) {
  for (const std::string& note : findings_text(result.findings)) say(common, note);
  write_artifact(result.artifact, out);
  if (settings.checkpoint) unlink(settings.checkpoint->c_str());
  for (const std::string& warning : result.warnings) say(common, "warning: " + warning);
  print_calibrated(result.artifact, out, common, more);
}

}  // namespace fcp::cli
