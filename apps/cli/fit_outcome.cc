#include "apps/cli/fit_outcome.h"

#include <algorithm>
#include <sstream>

#include "fcp/base/error.h"
#include "fcp/conformal/cross_guarantee.h"

#include "apps/report/format.h"
#include "apps/report/json.h"
#include "apps/report/promise.h"

namespace fcp::cli {
namespace {

// "consistent with 90 %", or how improbable what was seen is.
std::string verdict_words(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const std::string target = format_target(report.level);
  switch (coverage_verdict(claim)) {
    case Verdict::kAsExpected:
      return concat("consistent with ", target);
    case Verdict::kTooLow:
      return claim.p_value
                 ? concat("too low for ", target, " (p = ", format_number(*claim.p_value, 2), ")")
                 : concat("too low for ", target);
    case Verdict::kTooHigh:
      return concat("higher than chance explains for ", target);
    default:
      return concat("target ", target);
  }
}

std::string coverage_words(const EvaluationReport& report, const Coverage& coverage) {
  return concat("coverage ", format_percent(coverage.rate), " on ",
                format_count(coverage.rows, "test row"), ", ", verdict_words(report));
}

// The share of the test rows whose most likely label is the true one.
double test_accuracy(const SetEvaluation& sets) {
  return 1 - static_cast<double>(sets.confused_rows) / static_cast<double>(sets.rows);
}

std::string lowest_words(const std::string& kind, const GroupCoverage& lowest) {
  return concat("; lowest coverage: ", kind, ' ', lowest.name, ", ",
                format_percent(lowest.coverage.rate), " of ",
                format_count(lowest.coverage.rows, "row"));
}

std::string outcome_line(const FitOutcome& result) {
  const EvaluationReport& report = result.report;
  const MethodResult& main = report.methods.front();
  std::ostringstream line;
  if (result.task == Task::kClasses) {
    const SetEvaluation& sets = main.sets();
    line << coverage_words(report, sets.coverage) << "; mean set size "
         << format_number(sets.mean_size) << " of " << sets.classes << " classes; accuracy "
         << format_percent(test_accuracy(sets)) << lowest_words("class", sets.worst_class);
    return line.str();
  }
  const IntervalEvaluation& intervals = main.intervals();
  line << coverage_words(report, intervals.coverage) << "; mean length "
       << format_number(intervals.length.mean);
  if (intervals.output_error.size() == 1) {
    const PointError& error = intervals.output_error[0];
    line << "; RMSE " << format_number(error.rmse) << ", MAE " << format_number(error.mae)
         << ", target SD " << format_number(error.deviation);
  }
  if (intervals.worst_group) line << lowest_words("group", *intervals.worst_group);
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
         << result.calibrated.artifact.method.score.name();
    if (result.selection_rows > 0) {
      text << " (" << format_count(result.selection_rows) << " held out for selection)";
    }
  }
  if (!result.reason.empty()) {
    text << "; task: " << (result.task == Task::kClasses ? "classification" : "regression")
         << ", because " << result.reason;
  }
  text << "\nnext: fcp predict " << out << " --data NEW.csv --alpha " << result.report.level.text()
       << " --out intervals.csv";
  if (!report.empty()) text << "   (and open " << report << ')';
  text << '\n';
  return text.str();
}

nlohmann::ordered_json fit_json(const FitOutcome& result, const std::string& out,
                                const std::string& report) {
  nlohmann::ordered_json json = {
      {"out", out},
      {"task", result.task == Task::kClasses ? "classes" : "numbers"},
      {"training_rows", result.training_rows},
      {"calibration_rows", result.calibration_rows},
      {"selection_rows", result.selection_rows},
      {"test_rows", result.test_rows},
      {"rows_without_target", result.without_target},
      {"rows_refused", result.refused},
      {"score", result.calibrated.artifact.method.score.name()},
      {"calibration", result.calibrated.artifact.method.calibration.name()}};
  if (result.crossed) json["guaranteed_coverage"] = guaranteed(result);
  const MethodResult& main = result.report.methods.front();
  if (result.task == Task::kClasses) {
    json["accuracy"] = test_accuracy(main.sets());
    json["holdout"] = {{"accuracy", result.holdout.accuracy}};
  } else {
    const PointError& error = main.intervals().output_error.at(0);
    json["rmse"] = json_number(error.rmse);
    json["mae"] = json_number(error.mae);
    json["deviation"] = json_number(error.deviation);
    json["holdout"] = {{"rmse", json_number(result.holdout.rmse.at(0))},
                       {"mae", json_number(result.holdout.mae.at(0))}};
  }
  json["verdict"] = verdict_name(coverage_verdict(claim_of(result.report)));
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
