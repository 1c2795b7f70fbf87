#include "apps/server/server_facts.h"

#include <cmath>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/report/json.h"
#include "apps/report/monitor_report.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

// Metrics that say what truths have told.
constexpr const char* kOfTheMonitor[] = {"fcp_level",
                                         "fcp_coverage",
                                         "fcp_coverage_low",
                                         "fcp_coverage_high",
                                         "fcp_adapted_coverage",
                                         "fcp_adapted_mean_size",
                                         "fcp_mean_size",
                                         "fcp_alarms",
                                         "fcp_exchangeability_log10",
                                         "fcp_miscoverage_log10",
                                         "fcp_drift_log10"};

// A label by its name, where it has one.
Json truth_json(const StoredTruth& one, const std::vector<std::string>& classes) {
  Json truth = Json::array();
  for (const float value : one.truth) {
    const bool named = !classes.empty() && value >= 0 && value < static_cast<float>(classes.size());
    if (named) {
      truth.push_back(classes[static_cast<size_t>(value)]);
    } else {
      truth.push_back(json_number(value));
    }
  }
  return {{"time", one.time},
          {"id", one.prediction.id},
          {"row", one.prediction.row},
          {"truth", truth},
          {"p_value", one.p_value},
          {"covered", one.covered},
          {"size", json_number(one.size)}};
}

// As the points of a timeline by the hour.
Json json_of(const MinuteOfTruths& minute) {
  const SizeCount& size = minute.size;
  return {{"period", minute_text(minute.minute)},
          {"rows", minute.covered.rows},
          {"coverage", minute.covered.rate()},
          {"size", size.finite > 0 ? json_number(size.mean()) : Json("inf")}};
}

}  // namespace

ServerFacts::ServerFacts(const Level& level, const ModelStore& models, const LiveState* state,
                         bool state_optional, Metrics& metrics)
    : level_(level),
      models_(models),
      state_(state),
      state_optional_(state_optional),
      metrics_(metrics) {
  metrics_.set("fcp_build_info", label("version", FCP_VERSION), 1);
}

std::string ServerFacts::trouble() const {
  if (ending_) return "the server is ending";
  if (state_ != nullptr && !state_optional_ && !state_->is_healthy()) return kStateDown;
  for (const std::string& name : models_.names()) {
    const auto batcher = models_.find(name);
    if (batcher != nullptr && batcher->is_full()) return "too many rows wait; try again later";
  }
  return "";
}

HttpResponse ServerFacts::health() const {
  const std::string problem = trouble();
  return problem.empty() ? json_response({{"ready", true}}) : error_response(503, problem);
}

HttpResponse ServerFacts::server() const {
  return json_response({{"name", "fcp"},
                        {"version", FCP_VERSION},
                        {"extensions", {"binary_tensor_data"}},
                        {"models", models_.names()}});
}

HttpResponse ServerFacts::model(const ServedModel& model) const {
  const auto tensor = [](const std::string& name, const std::string& type,
                         const std::vector<int64_t>& shape) {
    return Json{{"name", name}, {"datatype", type}, {"shape", shape}};
  };
  Json json = {{"name", model.name()},
               {"versions", models_.versions(model.name())},
               {"platform", "fcp_onnx"}};
  for (const ServedModel::Input& input : model.inputs()) {
    json["inputs"].push_back(tensor(input.name, input.datatype, input.shape));
  }
  const auto outputs = static_cast<int64_t>(model.outputs());
  if (model.classes() == 0) {
    for (const char* name : {"prediction", "lower", "upper"}) {
      json["outputs"].push_back(tensor(name, "FP32", {-1, outputs}));
    }
  } else {
    json["outputs"] = {tensor("prediction", "INT64", {-1}),
                       tensor("in_set", "BOOL", {-1, static_cast<int64_t>(model.classes())})};
  }
  json["parameters"] = {{"score", model.facts().score},
                        {"calibration", model.facts().calibration},
                        {"calibration_rows", model.facts().rows},
                        {"version", model.version()},
                        {"sha256", model.sha256()},
                        {"columns", model.columns()},
                        {"class_names", model.class_names()},
                        {"alpha", level_.value()}};
  return json_response(json);
}

HttpResponse ServerFacts::status() const {
  Json json = {{"feedback", state_ != nullptr}, {"models", Json::array()}};
  for (const std::string& name : models_.names()) {
    const auto batcher = models_.find(name);
    Json one = {{"name", name},
                {"version", batcher->model()->version()},
                {"columns", batcher->model()->columns()},
                {"score", batcher->model()->facts().score},
                {"alpha", level_.value()}};
    const auto level =
        state_ == nullptr ? std::optional<Level>() : state_->adapted_level(*batcher->model());
    if (level) one["level"] = level->value();
    const auto live = state_ == nullptr ? std::optional<LiveReport>() : state_->live_report(name);
    if (live) {
      one["monitor"] = monitor_json(live->monitor);
      one["minutes"] = Json::array();
      for (const MinuteOfTruths& minute : live->minutes) one["minutes"].push_back(json_of(minute));
      one["recent"] = Json::array();
      for (const StoredTruth& truth : live->recent) {
        one["recent"].push_back(truth_json(truth, batcher->model()->class_names()));
      }
    }
    json["models"].push_back(std::move(one));
  }
  return json_response(json);
}

// What is asked for and not counted: it is as it is now.
void ServerFacts::measure_models() const {
  metrics_.clear("fcp_model_info");
  metrics_.clear("fcp_queue_rows");
  for (const std::string& name : models_.names()) {
    for (const std::string& version : models_.versions(name)) {
      const auto batcher = models_.find(name, version);
      if (batcher == nullptr) continue;  // gone meanwhile
      const ServedModel& model = *batcher->model();
      const std::string who = concat(label("model", name), ",", label("version", version));
      metrics_.set("fcp_queue_rows", who, static_cast<double>(batcher->queued()));
      metrics_.set("fcp_model_info",
                   concat(who, ",", label("sha256", model.sha256()), ",",
                          label("task", task_of(model)), ",", label("score", model.facts().score)),
                   1);
    }
  }
}

// Nothing is said of truths before there is one.
void ServerFacts::measure_monitor(const std::string& name) const {
  const std::string who = label("model", name);
  const auto batcher = models_.find(name);
  if (batcher == nullptr) return;
  if (const auto level = state_->adapted_level(*batcher->model())) {
    metrics_.set("fcp_level", who, level->value());
  }
  const auto report = state_->report(name);
  if (!report || report->rows == 0) return;
  if (report->adapted_covered.rows > 0) {
    metrics_.set("fcp_adapted_coverage", who, report->adapted_covered.rate());
  }
  if (report->adapted_size.finite > 0) {
    metrics_.set("fcp_adapted_mean_size", who, report->adapted_size.mean());
  }
  metrics_.set("fcp_coverage", who, report->covered.rate());
  metrics_.set("fcp_coverage_low", who, report->sequence.lower);
  metrics_.set("fcp_coverage_high", who, report->sequence.upper);
  if (report->size.finite > 0) metrics_.set("fcp_mean_size", who, report->size.mean());
  metrics_.set("fcp_alarms", who, static_cast<double>(report->alarms.size()));
  metrics_.set("fcp_exchangeability_log10", who, report->log_exchangeability / std::log(10));
  metrics_.set("fcp_miscoverage_log10", who, report->log_coverage / std::log(10));
  metrics_.set("fcp_drift_log10", who, report->log_drift / std::log(10));
}

HttpResponse ServerFacts::metrics() const {
  const std::lock_guard lock(measuring_);
  measure_process(metrics_);
  measure_models();
  for (const char* name : kOfTheMonitor) metrics_.clear(name);  // a new version begins anew
  metrics_.set("fcp_ready", "", trouble().empty() ? 1 : 0);
  if (state_ != nullptr) {
    metrics_.set("fcp_state_up", "", state_->is_healthy() ? 1 : 0);
    metrics_.set("fcp_state_errors_total", "", static_cast<double>(state_->errors()));
    metrics_.set("fcp_waiting_predictions", "", static_cast<double>(state_->waiting()));
    metrics_.set("fcp_truths_stored", "", static_cast<double>(state_->truths()));
    for (const std::string& name : models_.names()) measure_monitor(name);
  }
  return {.type = Metrics::kType, .body = metrics_.text()};
}

}  // namespace fcp
