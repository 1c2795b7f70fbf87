#include "apps/cli/print_report.h"

#include <iostream>
#include <sstream>

#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/evaluate/measures/coverage_law.h"

#include "apps/report/choices_text.h"
#include "apps/report/console.h"
#include "apps/report/json.h"
#include "apps/report/page.h"
#include "apps/report/promise.h"
#include "apps/report/results.h"
#include "apps/report/verdict.h"

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
  text << "\nnext: fcp predict " << out << " --data NEW.csv --out "
       << (result.task == Task::kClasses ? "sets.csv" : "intervals.csv");
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
