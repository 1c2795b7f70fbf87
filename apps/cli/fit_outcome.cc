#include "apps/cli/fit_outcome.h"

#include <sstream>

#include "fcp/base/error.h"

#include "apps/report/format.h"
#include "apps/report/json.h"
#include "apps/report/promise.h"
#include "apps/report/verdict.h"

namespace fcp::cli {
namespace {

// "consistent with 90 %", or how improbable what was seen is.
std::string verdict_words(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const std::string target = format_target(report.level);
  if (claim.folds > 0) {
    const bool low = coverage_verdict(claim) == Verdict::kTooLow;
    return concat(low ? "too low: " : "", cross_words(claim));
  }
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
  const size_t wrong = sets.confused_rows + sets.unknown_rows;
  return 1 - static_cast<double>(wrong) / static_cast<double>(sets.rows);
}

std::string lowest_words(const std::string& kind, const GroupCoverage& lowest) {
  return concat("; lowest coverage: ", kind, kind.empty() ? "" : " ", lowest.name, ", ",
                format_percent(lowest.coverage.rate), " of ",
                format_count(lowest.coverage.rows, "row"));
}

std::string error_words(const PointError& error) {
  return concat("RMSE ", format_number(error.rmse), ", MAE ", format_number(error.mae),
                ", target SD ", format_number(error.deviation));
}

// Of several targets a line each, in the unit of each.
std::string target_lines(const EvaluationReport& report) {
  std::string lines;
  for (size_t k = 0; k < report.responses.size(); ++k) {
    const IntervalEvaluation& found = report.methods.front().intervals();
    lines += concat("  ", report.responses[k], ": coverage ",
                    format_percent(found.output_coverage.at(k)), ", mean length ",
                    format_number(found.output_length.at(k).mean));
    if (!found.output_error.empty()) lines += "; " + error_words(found.output_error.at(k));
    lines += '\n';
  }
  return lines;
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
  if (intervals.output_error.size() == 1) line << "; " << error_words(intervals.output_error[0]);
  if (intervals.worst_group) {
    line << lowest_words("group", *intervals.worst_group);
  } else if (intervals.response_thirds.size() > 1) {
    line << lowest_words("", {concat(intervals.worst_third.name, " of ", report.response),
                              intervals.worst_third.coverage});
  }
  return line.str();
}

// By what rows the predictor was made.
std::string made_words(const MadeRows& rows, const std::string& score) {
  std::string words = concat("trained on ", format_count(rows.training), " rows, calibrated on ",
                             format_count(rows.calibration), " with the score ", score);
  if (rows.selection > 0) {
    words += concat(" (", format_count(rows.selection), " held out for selection)");
  }
  return words;
}

std::string task_words(const FitOutcome& result) {
  if (result.reason.empty()) return "";
  return concat("; task: ", result.task == Task::kClasses ? "classification" : "regression",
                ", because ", result.reason);
}

std::string made_line(const FitOutcome& result) {
  if (result.crossed) {
    return concat("trained on ", format_count(result.rows.training),
                  " rows and calibrated on the same in ", result.report.folds,
                  " folds: ", cross_words(claim_of(result.report)));
  }
  const std::string score = result.calibrated.artifact.method.score.name();
  if (!result.refit) return made_words(result.rows, score);
  return concat(made_words(*result.refit, score), ": again, after one trained on ",
                format_count(result.rows.training), " older rows and calibrated on ",
                format_count(result.rows.calibration), " was tested");
}

// How the rows of the evaluation were split.
std::string split_words(const FitOutcome& result) { return result.split.text; }

// Of the test rows, and of training rows that were held out; of several targets a list.
void add_errors(nlohmann::ordered_json& json, const FitOutcome& result) {
  const std::vector<PointError>& errors = result.report.methods.front().intervals().output_error;
  const auto put = [](nlohmann::ordered_json& to, const char* name, double value, bool several) {
    if (several) {
      to[name].push_back(json_number(value));
    } else {
      to[name] = json_number(value);
    }
  };
  const bool several = errors.size() > 1;
  if (several) json["targets"] = result.report.responses;
  for (size_t k = 0; k < errors.size(); ++k) {
    put(json, "rmse", errors[k].rmse, several);
    put(json, "mae", errors[k].mae, several);
    put(json, "deviation", errors[k].deviation, several);
    put(json["holdout"], "rmse", result.holdout.rmse.at(k), several);
    put(json["holdout"], "mae", result.holdout.mae.at(k), several);
  }
}

}  // namespace

std::string fit_text(const FitOutcome& result, const std::string& out, const std::string& report) {
  std::ostringstream text;
  text << outcome_line(result) << '\n' << target_lines(result.report);
  for (const std::string& watched : watch_texts(result.report, 1)) {
    text << "watch: " << watched << '\n';
  }
  text << out << ": " << made_line(result) << task_words(result);
  if (result.split.text != "at random") text << "; rows split " << split_words(result);
  text << "\nnext: fcp predict " << out << " --data NEW.csv --out intervals.csv";
  if (!report.empty()) text << "   (and open " << report << ')';
  text << '\n';
  return text.str();
}

nlohmann::ordered_json fit_json(const FitOutcome& result, const std::string& out,
                                const std::string& report) {
  nlohmann::ordered_json json = {
      {"out", out},
      {"task", result.task == Task::kClasses ? "classes" : "numbers"},
      {"training_rows", result.rows.training},
      {"calibration_rows", result.rows.calibration},
      {"selection_rows", result.rows.selection},
      {"test_rows", result.test_rows},
      {"rows_without_target", result.without_target},
      {"rows_refused", result.refused},
      {"score", result.calibrated.artifact.method.score.name()},
      {"calibration", result.calibrated.artifact.method.calibration.name()}};
  json["split"] = split_words(result);
  if (result.crossed) json["guaranteed_coverage"] = guaranteed_rate(claim_of(result.report));
  if (result.refit) {
    json["refit"] = {{"training_rows", result.refit->training},
                     {"calibration_rows", result.refit->calibration},
                     {"selection_rows", result.refit->selection}};
  }
  const MethodResult& main = result.report.methods.front();
  if (result.task == Task::kClasses) {
    json["accuracy"] = test_accuracy(main.sets());
    json["holdout"] = {{"accuracy", result.holdout.accuracy}};
  } else {
    add_errors(json, result);
  }
  json["verdict"] = verdict_name(coverage_verdict(claim_of(result.report)));
  if (!report.empty()) json["report"] = report;
  json["evaluation"] = report_json(result.report);
  return json;
}

}  // namespace fcp::cli
