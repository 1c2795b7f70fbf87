#include "apps/report/json.h"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/conformal/cross_guarantee.h"

#include "apps/report/explanation_report.h"
#include "apps/report/promise.h"
#include "apps/report/results.h"
#include "apps/report/verdict.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

Json json_number(const std::optional<double>& value) {
  return value ? fcp::json_number(*value) : Json(nullptr);
}

void add_coverage(Json& object, const Coverage& coverage) {
  object["rows"] = coverage.rows;
  object["covered"] = coverage.covered;
  object["coverage"] = json_number(coverage.rate);
  object["coverage_low"] = json_number(coverage.lower);
  object["coverage_high"] = json_number(coverage.upper);
}

Json group_json(const GroupCoverage& group) {
  Json object = {{"name", group.name}};
  add_coverage(object, group.coverage);
  return object;
}

Json groups_json(std::span<const GroupCoverage> groups) {
  Json list = Json::array();
  for (const GroupCoverage& group : groups) list.push_back(group_json(group));
  return list;
}

Json strata_json(std::span<const Stratum> strata, bool sizes) {
  Json list = Json::array();
  for (const Stratum& stratum : strata) {
    Json object = {{"name", format_stratum(stratum, sizes)},
                   {"low", json_number(stratum.low)},
                   {"high", json_number(stratum.high)}};
    add_coverage(object, stratum.coverage);
    list.push_back(std::move(object));
  }
  return list;
}

void add_length(Json& object, const LengthSummary& length) {
  object["length"] = json_number(length.mean);
  object["finite_length"] = json_number(length.mean_finite);
  object["median_length"] = json_number(length.median);
  object["infinite_share"] = json_number(length.infinite_share);
  object["empty_share"] = json_number(length.empty_share);
}

void add_error(Json& object, const PointError& error) {
  object["rmse"] = json_number(error.rmse);
  object["mae"] = json_number(error.mae);
  object["deviation"] = json_number(error.deviation);
}

Json outputs_json(const IntervalEvaluation& evaluation, const JsonNames& names) {
  Json list = Json::array();
  for (size_t k = 0; k < evaluation.outputs; ++k) {
    Json object = {{"name", k < names.outputs.size() ? names.outputs[k] : concat("output ", k)}};
    add_coverage(object, output_coverage(evaluation, k, names.confidence));
    add_length(object, evaluation.output_length.at(k));
    if (!evaluation.output_error.empty()) add_error(object, evaluation.output_error.at(k));
    list.push_back(std::move(object));
  }
  return list;
}

void add_groups(Json& object, std::span<const GroupCoverage> groups,
                const std::optional<GroupCoverage>& worst) {
  if (groups.empty()) return;
  object["groups"] = groups_json(groups);
  if (worst) object["worst_group"] = group_json(*worst);
}

Json distribution_json(const DistributionEvaluation& found) {
  Json json = {{"rows", found.rows},
               {"crps", json_number(found.crps)},
               {"pit", found.pit},
               {"pit_low", json_number(found.pit_low)},
               {"pit_high", json_number(found.pit_high)}};
  for (const ThresholdCalibration& one : found.thresholds) {
    json["above"].push_back({{"threshold", json_number(one.threshold)},
                             {"predicted", json_number(one.predicted)},
                             {"observed", json_number(one.observed)}});
  }
  return json;
}

void add_figures(Json& object, const ProbabilityFigures& figures) {
  object["log_loss"] = json_number(figures.log_loss);
  object["brier"] = json_number(figures.brier);
  object["ece"] = json_number(figures.ece);
}

Json probabilities_json(const ProbabilityEvaluation& found) {
  Json json = {{"method", found.method}, {"rows", found.rows}, {"of", found.of}};
  add_figures(json, found.figures);
  for (const ReliabilityBin& bin : found.reliability) {
    json["reliability"].push_back({{"from", bin.from},
                                   {"to", bin.to},
                                   {"rows", bin.rows},
                                   {"predicted", json_number(bin.predicted)},
                                   {"observed", json_number(bin.observed)},
                                   {"low", json_number(bin.low)},
                                   {"high", json_number(bin.high)}});
  }
  if (found.mean_gap) json["mean_gap"] = json_number(*found.mean_gap);
  if (found.softmax) add_figures(json["softmax"], *found.softmax);
  return json;
}

Json conditional_json(const ConditionalCoverage& found) {
  Json object = {{"rows", found.rows}};
  Json slab;
  if (found.worst_slab) add_coverage(slab, *found.worst_slab);
  object["worst_slab"] = std::move(slab);
  const std::optional<ExcessRisk>& risk = found.excess_risk;
  object["excess_risk"] = risk ? json_number(risk->value) : Json();
  object["excess_risk_error"] = risk ? json_number(risk->standard_error) : Json();
  if (found.gap) {
    object["coverage_gap"] = json_number(found.gap->gap);
    object["squared_error"] = json_number(found.gap->squared_error);
    object["squared_error_by_chance"] = json_number(found.gap->by_chance);
    for (const CoveragePart& part : found.gap->parts) {
      object["parts"].push_back({{"rows", part.rows}, {"covered", part.covered}});
    }
  }
  object["length_miss_correlation"] = json_number(found.correlation);
  if (found.stability) {
    object["refits"] = found.refits;
    object["stability"] = json_number(*found.stability);
  }
  return object;
}

// Rows with which the law of coverage holds for one radius: 0 where it does not.
size_t lawful_rows(const EvaluationReport& report) {
  const MethodResult& main = report.methods.front();
  return main.guaranteed && main.radius ? report.calibration_rows : 0;
}

Json row_method_json(const MethodResult& method, const EvaluationReport& report) {
  Json object = {{"method", method.name}, {"radius", json_number(method.radius)}};
  const bool main = &method == &report.methods.front();
  object.update(std::holds_alternative<SetEvaluation>(method.evaluation)
                    ? evaluation_json(method.sets(), report.level)
                    : evaluation_json(method.intervals(), report.level,
                                      {output_names(report), report.confidence}));
  object["guaranteed"] = method.guaranteed;
  if (method.detection) {
    object["detection_coverage"] = json_number(method.detection->rate);
    object["detection_coverage_low"] = json_number(method.detection->lower);
    object["detection_coverage_high"] = json_number(method.detection->upper);
  }
  if (method.conditional) object["conditional"] = conditional_json(*method.conditional);
  if (method.distribution) object["distribution"] = distribution_json(*method.distribution);
  const char* size = std::holds_alternative<SetEvaluation>(method.evaluation) ? "size" : "length";
  for (const LevelResult& at : method.levels) {
    Json entry = {{"alpha", at.level.value()}, {size, json_number(at.size)}};
    add_coverage(entry, at.coverage);
    object["levels"].push_back(std::move(entry));
  }
  if (!method.curve.empty()) {
    object["curve"] = curve_json(method.curve, main ? lawful_rows(report) : 0);
  }
  if (method.top1) object["top1"] = json_number(*method.top1);
  if (method.top5) object["top5"] = json_number(*method.top5);
  if (method.probabilities) object["probabilities"] = probabilities_json(*method.probabilities);
  return object;
}

Json pixel_method_json(const MethodResult& method) {
  const PixelEvaluation& all = method.pixels();
  Json json = {{"method", method.name},
               {"radius", json_number(method.radius)},
               {"images", all.coverage.rows},
               {"covered", all.coverage.covered},
               {"coverage", all.coverage.rate},
               {"coverage_low", all.coverage.lower},
               {"coverage_high", all.coverage.upper},
               {"joint_coverage", all.whole.rate},
               {"pixel_coverage", json_number(all.pixel_coverage)}};
  if (method.detection) json["detection_coverage"] = method.detection->rate;
  const std::string size = all.sets ? "size" : "length";
  if (!all.sets) json["value_coverage"] = json_number(all.value_coverage);
  json[size] = json_number(all.length);
  if (!all.sets) json["weighted_length"] = json_number(all.weighted_length);
  json["boundary_" + size] = json_number(all.boundary_length);
  json["inside_" + size] = json_number(all.inside_length);
  if (!all.sets) {
    json["boundary_uncertainty"] = json_number(all.boundary_uncertainty);
    json["inside_uncertainty"] = json_number(all.inside_uncertainty);
  }
  return json;
}

Json method_json(const MethodResult& method, const EvaluationReport& report) {
  return std::holds_alternative<PixelEvaluation>(method.evaluation)
             ? pixel_method_json(method)
             : row_method_json(method, report);
}

// What the law of coverage says of the main method.
void add_verdict(Json& object, const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  object["p_coverage"] = json_number(claim.p_value);
  object["verdict"] = verdict_name(coverage_verdict(claim));
  if (claim.folds > 0) {
    object["guaranteed_coverage"] =
        cross_guarantee(claim.level, claim.calibration_rows, claim.folds);
  }
  for (const GuaranteedGroup& group : report.guaranteed_groups) {
    Json entry = {{"name", group.name}, {"calibration_rows", group.calibration_rows}};
    if (group.coverage) {
      entry["p_coverage"] =
          json_number(coverage_p_value(report.level, group.calibration_rows, *group.coverage));
    }
    object["guaranteed_groups"].push_back(std::move(entry));
  }
}

constexpr std::string_view kOriginNames[] = {"unknown",    "random split",     "new groups",
                                             "later rows", "calibration rows", "training rows"};

// What is known of the rows and their parts, and what to watch.
void add_parts(Json& object, const EvaluationReport& report) {
  object["rows_are"] = kOriginNames[static_cast<size_t>(report.origin)];
  if (report.rows_alike > 1) object["rows_alike"] = json_number(report.rows_alike);
  if (!report.split.empty()) object["split"] = report.split;
  for (const ColumnCoverage& column : report.by_column) {
    object["by_column"][column.column] = groups_json(column.parts);
  }
  if (!report.over_time.empty()) object["over_time"] = groups_json(report.over_time);
  if (report.importance) object["importance"] = explanation_json(*report.importance);
  for (const ColumnUse& column : report.columns) {
    object["columns"].push_back({{"name", column.name},
                                 {"type", column.type},
                                 {"missing", column.missing},
                                 {"use", column.use}});
  }
  const ReportVerdict verdict = verdict_of(report, claim_of(report));
  object["headline"] = verdict.headline;
  for (const WatchedPart& part : verdict.watched) {
    object["watch"].push_back({{"what", part.what}, {"cure", part.cure}});
  }
}

}  // namespace

Json json_number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> output_names(const EvaluationReport& report) {
  const size_t outputs = report.methods.front().intervals().outputs;
  if (outputs < 2) return {report.response};
  std::vector<std::string> names = report.responses;
  for (size_t i = names.size(); i < outputs; ++i) names.push_back(concat("output ", i));
  // Names that are numbers are those of unnamed outputs.
  for (std::string& name : names) {
    if (name.find_first_not_of("0123456789") == std::string::npos) name.insert(0, "output ");
  }
  return names;
}

Coverage output_coverage(const IntervalEvaluation& evaluation, size_t output, double confidence) {
  const double covered =
      evaluation.output_coverage.at(output) * static_cast<double>(evaluation.rows);
  return coverage_of(static_cast<size_t>(std::lround(covered)), evaluation.rows, confidence);
}

Json evaluation_json(const IntervalEvaluation& evaluation, const Level& level,
                     const JsonNames& names) {
  Json object = {{"alpha", level.value()}};
  add_coverage(object, evaluation.coverage);
  object["outputs"] = evaluation.outputs;
  if (evaluation.side != BoundSide::kBoth) object["side"] = side_name(evaluation.side);
  add_length(object, evaluation.length);
  if (evaluation.weighted_length) {
    object["weighted_length"] = json_number(*evaluation.weighted_length);
  }
  if (evaluation.joint_coverage) {
    object["joint_coverage"] = json_number(*evaluation.joint_coverage);
  }
  if (evaluation.volume) {
    object["volume"] = json_number(*evaluation.volume);
    object["volume_per_dimension"] = json_number(*evaluation.volume_per_dimension);
  }
  if (evaluation.output_error.size() == 1) add_error(object, evaluation.output_error[0]);
  object["interval_score"] = json_number(evaluation.interval_score);
  object["thirds"] = groups_json(evaluation.response_thirds);
  object["worst_third"] = group_json(evaluation.worst_third);
  add_groups(object, evaluation.groups, evaluation.worst_group);
  object["length_strata"] = strata_json(evaluation.length_strata, false);
  if (evaluation.outputs > 1) object["by_output"] = outputs_json(evaluation, names);
  return object;
}

Json evaluation_json(const SetEvaluation& evaluation, const Level& level) {
  Json object = {{"alpha", level.value()}};
  add_coverage(object, evaluation.coverage);
  object["classes"] = evaluation.classes;
  object["size"] = json_number(evaluation.mean_size);
  object["empty_share"] = json_number(evaluation.empty_share);
  object["full_share"] = json_number(evaluation.full_share);
  object["unknown_rows"] = evaluation.unknown_rows;
  object["size_histogram"] = evaluation.size_histogram;
  object["class_coverage"] = groups_json(evaluation.class_coverage);
  object["worst_class"] = group_json(evaluation.worst_class);
  add_groups(object, evaluation.groups, evaluation.worst_group);
  object["size_strata"] = strata_json(evaluation.size_strata, true);
  for (const ClassAnswers& one : evaluation.answers) {
    const auto share = [&](size_t whole) {
      return whole == 0 ? Json()
                        : Json(static_cast<double>(one.right) / static_cast<double>(whole));
    };
    object["answers"].push_back({{"label", one.name},
                                 {"rows", one.rows},
                                 {"predicted", one.predicted},
                                 {"precision", share(one.predicted)},
                                 {"recall", share(one.rows)}});
    if (one.auc) object["answers"].back()["auc"] = json_number(*one.auc);
  }
  if (evaluation.auc) object["auc"] = json_number(*evaluation.auc);
  if (evaluation.log_loss) object["log_loss"] = json_number(*evaluation.log_loss);
  for (const Confusion& one : evaluation.confusions) {
    object["confusions"].push_back({{"label", one.truth},
                                    {"prediction", one.prediction},
                                    {"rows", one.rows},
                                    {"covered", one.covered}});
  }
  return object;
}

Json curve_json(std::span<const CurvePoint> curve, size_t calibration_rows) {
  Json list = Json::array();
  for (const CurvePoint& point : curve) {
    Json object = {{"alpha", point.level.value()}, {"radius", json_number(point.radius)}};
    add_coverage(object, point.coverage);
    if (calibration_rows > 0) {
      // Where the rows are too few for the level, the radius is infinite and covers all.
      const ExpectedCoverage all{1, 1};
      const ExpectedCoverage expected =
          expected_coverage(point.level, calibration_rows).value_or(all);
      object["expected_low"] = json_number(expected.low);
      object["expected_high"] = json_number(expected.high);
    }
    list.push_back(std::move(object));
  }
  return list;
}

Json report_json(const EvaluationReport& report) {
  if (report.methods.empty()) throw std::invalid_argument("a report without a method");
  const MethodResult& main = report.methods.front();
  const bool pixels = std::holds_alternative<PixelEvaluation>(main.evaluation);
  Json object = Json::object();
  if (pixels) {
    object = {{"alpha", report.level.value()},
              {"pixels", main.pixels().share},
              {"calibration_images", report.calibration_rows}};
  }
  object.update(method_json(main, report));
  if (!pixels) object["calibration_rows"] = report.calibration_rows;
  add_verdict(object, report);
  for (size_t i = 1; i < report.methods.size(); ++i) {
    object["others"].push_back(method_json(report.methods[i], report));
  }
  if (!pixels) add_parts(object, report);
  for (const auto& [key, value] : report.provenance) object["provenance"][key] = value;
  if (!report.notes.empty()) object["notes"] = report.notes;
  if (!pixels && !report.class_names.empty()) object["class_names"] = report.class_names;
  return object;
}

}  // namespace fcp
