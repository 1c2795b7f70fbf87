#include "fcp/report/json.h"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

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

Json strata_json(std::span<const Stratum> strata) {
  Json list = Json::array();
  for (const Stratum& stratum : strata) {
    Json object = {{"low", json_number(stratum.low)}, {"high", json_number(stratum.high)}};
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

Json outputs_json(const IntervalEvaluation& evaluation) {
  Json list = Json::array();
  for (size_t k = 0; k < evaluation.outputs; ++k) {
    Json object = {{"coverage", json_number(evaluation.output_coverage.at(k))}};
    add_length(object, evaluation.output_length.at(k));
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

// Of either kind of report: the fields have the same names.
template <typename Method>
Json method_json(const Method& method, const Level& level) {
  Json object = {{"method", method.name}, {"radius", json_number(method.radius)}};
  object.update(evaluation_json(method.evaluation, level));
  object["guaranteed"] = method.guaranteed;
  if (method.detection) {
    object["detection_coverage"] = json_number(method.detection->rate);
    object["detection_coverage_low"] = json_number(method.detection->lower);
    object["detection_coverage_high"] = json_number(method.detection->upper);
  }
  if (!method.curve.empty()) object["curve"] = curve_json(method.curve);
  if constexpr (std::is_same_v<Method, LabelMethodResult>) {
    if (method.top1) object["top1"] = json_number(*method.top1);
    if (method.top5) object["top5"] = json_number(*method.top5);
  }
  return object;
}

template <typename Report>
Json report_json(const Report& report) {
  if (report.methods.empty()) throw std::invalid_argument("a report without a method");
  Json object = method_json(report.methods.front(), report.level);
  object["calibration_rows"] = report.calibration_rows;
  Json others = Json::array();
  for (size_t i = 1; i < report.methods.size(); ++i) {
    others.push_back(method_json(report.methods[i], report.level));
  }
  if (!others.empty()) object["others"] = std::move(others);
  Json provenance = Json::object();
  for (const auto& [key, value] : report.provenance) provenance[key] = value;
  if (!provenance.empty()) object["provenance"] = std::move(provenance);
  if (!report.notes.empty()) object["notes"] = report.notes;
  return object;
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

Json evaluation_json(const IntervalEvaluation& evaluation, const Level& level) {
  Json object = {{"alpha", level.value()}};
  add_coverage(object, evaluation.coverage);
  object["outputs"] = evaluation.outputs;
  add_length(object, evaluation.length);
  if (evaluation.weighted_length) {
    object["weighted_length"] = json_number(*evaluation.weighted_length);
  }
  object["interval_score"] = json_number(evaluation.interval_score);
  object["thirds"] = groups_json(evaluation.response_thirds);
  object["worst_third"] = group_json(evaluation.worst_third);
  add_groups(object, evaluation.groups, evaluation.worst_group);
  object["length_strata"] = strata_json(evaluation.length_strata);
  if (evaluation.outputs > 1) object["by_output"] = outputs_json(evaluation);
  return object;
}

Json evaluation_json(const SetEvaluation& evaluation, const Level& level) {
  Json object = {{"alpha", level.value()}};
  add_coverage(object, evaluation.coverage);
  object["classes"] = evaluation.classes;
  object["size"] = json_number(evaluation.mean_size);
  object["empty_share"] = json_number(evaluation.empty_share);
  object["full_share"] = json_number(evaluation.full_share);
  object["size_histogram"] = evaluation.size_histogram;
  object["class_coverage"] = groups_json(evaluation.class_coverage);
  object["worst_class"] = group_json(evaluation.worst_class);
  add_groups(object, evaluation.groups, evaluation.worst_group);
  object["size_strata"] = strata_json(evaluation.size_strata);
  return object;
}

Json curve_json(std::span<const CurvePoint> curve) {
  Json list = Json::array();
  for (const CurvePoint& point : curve) {
    Json object = {{"alpha", point.level.value()}, {"radius", json_number(point.radius)}};
    add_coverage(object, point.coverage);
    list.push_back(std::move(object));
  }
  return list;
}

Json interval_report_json(const IntervalReport& report) { return report_json(report); }

Json label_report_json(const LabelReport& report) {
  Json object = report_json(report);
  if (!report.class_names.empty()) object["class_names"] = report.class_names;
  return object;
}

}  // namespace fcp
