#include "cli/fit_outcome.h"

#include <algorithm>
#include <sstream>

#include "fcp/conformal/cross_guarantee.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

namespace fcp::cli {
namespace {

std::string outcome_line(const FitOutcome& result) {
  const EvaluationReport& report = result.report;
  const MethodResult& main = report.methods.front();
  std::ostringstream line;
  if (result.task == Task::kClasses) {
    const SetEvaluation& sets = main.sets();
    line << "label sets hold the truth in " << format_percent(sets.coverage.rate) << " of "
         << format_count(sets.rows) << " test rows (asked for: " << format_target(report.level)
         << "), mean size " << format_number(sets.mean_size) << " of " << sets.classes
         << " classes; accuracy of the single answer " << format_percent(result.error.accuracy);
    return line.str();
  }
  const IntervalEvaluation& intervals = main.intervals();
  line << "intervals hold the truth in " << format_percent(intervals.coverage.rate) << " of "
       << format_count(intervals.rows) << " test rows (asked for: " << format_target(report.level)
       << "), mean length " << format_number(intervals.length.mean);
  if (result.error.rmse.size() == 1) {
    line << "; " << report.response << " has the deviation " << format_number(result.deviation)
         << ", the prediction an RMSE of " << format_number(result.error.rmse[0]);
  }
  return line.str();
}

double guaranteed(const FitOutcome& result) {
  return cross_guarantee(result.report.level, result.calibration_rows, result.report.folds);
}

}  // namespace

std::string fit_text(const FitOutcome& result, const std::string& out, const std::string& report) {
  std::ostringstream text;
  text << outcome_line(result) << '\n';
  text << out << ": trained ";
  if (result.crossed) {
    text << "on " << format_count(result.training_rows) << " rows and calibrated on the same in "
         << result.report.folds << " folds (cross: at least " << format_percent(guaranteed(result))
         << " is guaranteed, near " << format_target(result.report.level) << " is usual)";
  } else {
    text << "on " << format_count(result.training_rows) << " rows, calibrated on "
         << format_count(result.calibration_rows) << " by the score "
         << result.calibrated.artifact.score.name;
  }
  if (!result.reason.empty()) {
    text << "; task: " << (result.task == Task::kClasses ? "classes" : "numbers") << ", because "
         << result.reason;
  }
  text << "\nnext: fcp predict " << out << " --data NEW.csv --alpha " << result.report.level.text()
       << " --out intervals.csv";
  if (!report.empty()) text << "   (and open " << report << ')';
  text << '\n';
  return text.str();
}

nlohmann::ordered_json fit_json(const FitOutcome& result, const std::string& out,
                                const std::string& report) {
  nlohmann::ordered_json json = {{"out", out},
                                 {"task", result.task == Task::kClasses ? "classes" : "numbers"},
                                 {"training_rows", result.training_rows},
                                 {"calibration_rows", result.calibration_rows},
                                 {"test_rows", result.test_rows},
                                 {"rows_without_target", result.without_target},
                                 {"rows_refused", result.refused},
                                 {"score", result.calibrated.artifact.score.name},
                                 {"calibration", result.calibrated.artifact.calibration.name}};
  if (result.crossed) json["guaranteed_coverage"] = guaranteed(result);
  if (result.task == Task::kClasses) {
    json["accuracy"] = result.error.accuracy;
  } else {
    json["rmse"] = json_number(result.error.rmse.at(0));
    json["mae"] = json_number(result.error.mae.at(0));
    json["deviation"] = json_number(result.deviation);
  }
  if (!report.empty()) json["report"] = report;
  json["evaluation"] = report_json(result.report);
  return json;
}

std::vector<std::string> fit_warnings(const FitOutcome& result) {
  std::vector<std::string> warnings = result.calibrated.warnings;
  for (const std::string& note : result.report.notes) {
    if (std::find(warnings.begin(), warnings.end(), note) == warnings.end()) {
      warnings.push_back(note);
    }
  }
  return warnings;
}

}  // namespace fcp::cli
