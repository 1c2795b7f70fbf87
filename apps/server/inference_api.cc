#include "apps/server/inference_api.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <malloc.h>
#include <nlohmann/json.hpp>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "fcp/base/error.h"

#include "apps/report/json.h"
#include "apps/report/monitor_report.h"
#include "apps/server/feedback_message.h"
#include "apps/server/status_page.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse json_response(const Json& json) { return {.body = compact(json)}; }

// What is wrong is logged: it may name files and databases.
constexpr const char* kNobodyWaits = "nobody waits for the answer any more";
constexpr const char* kStateDown = "the state is unavailable; try again later";

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

std::string fresh_id() {
  unsigned char bytes[12];
  if (RAND_bytes(bytes, sizeof bytes) != 1) fail("the system has no random bytes");
  std::string id;
  for (const unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

std::optional<size_t> json_size(const HttpRequest& request) {
  const std::string text = request.header("inference-header-content-length");
  if (text.empty()) return std::nullopt;
  size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("Inference-Header-Content-Length is not a number of bytes");
  }
  return size;
}

// "a/b/c" → "a", and leaves "b/c".
std::string next_part(std::string& path) {
  const size_t slash = std::min(path.find('/'), path.size());
  std::string part = path.substr(0, slash);
  path.erase(0, slash + 1);
  return part;
}

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

HttpResponse plain(const std::string& type, std::string body) {
  return {.type = type, .body = std::move(body)};
}

// One as a number, several as the request names them.
std::variant<double, std::string> level_of(const std::vector<Level>& levels) {
  if (levels.size() == 1) return levels[0].value();
  std::string all;
  for (const Level& level : levels) all += concat(all.empty() ? "" : ",", level.text());
  return all;
}

// W3C's trace context, "" where it is none: what a client sends must not fill the log.
std::string trace_of(const HttpRequest& request) {
  constexpr size_t kSize = 55;
  const std::string text = request.header("traceparent");
  const bool plain = text.find_first_not_of("0123456789abcdef-") == std::string::npos;
  return text.size() == kSize && plain ? text : "";
}

HttpResponse not_allowed(const std::string& methods) {
  HttpResponse response = error_response(405, concat("expected ", methods));
  response.headers["Allow"] = methods;
  return response;
}

// What a page of another site can make a browser send without asking the server first.
std::optional<HttpResponse> foreign_page_response(const HttpRequest& request) {
  if (request.reads()) return std::nullopt;
  const std::string type = request.header("content-type");
  for (const char* form : {"text/plain", "multipart/form-data"}) {
    if (!type.starts_with(form)) continue;
    return error_response(415, concat("the Content-Type ", form,
                                      " is what web pages send; say "
                                      "application/json"));
  }
  if (request.header("sec-fetch-site") != "cross-site") return std::nullopt;
  return error_response(403, "a page of another site must not send this");
}

}  // namespace

InferenceApi::InferenceApi(const ApiOptions& options, ModelStore& models, LiveState* state,
                           Metrics& metrics, ServerLog& log)
    : options_(options), models_(models), state_(state), metrics_(metrics), log_(log) {
  metrics_.set("fcp_build_info", label("version", FCP_VERSION), 1);
}

void InferenceApi::finish(const Call& call, HttpResponse response) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - call.start).count();
  const size_t rows = response.status == 200 ? call.rows : 0;
  metrics_.count(call.model, call.what, response.status, rows, seconds);
  log_call(call, response, rows, seconds);
  call.respond(std::move(response));
}

// All requests where that is asked for, and those that fail.
void InferenceApi::log_call(const Call& call, const HttpResponse& response, size_t rows,
                            double seconds) {
  if (!options_.log_requests && response.status < 500) return;
  Json line = {{"method", call.method}, {"path", call.path.substr(0, 200)}};
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"model", call.model},
                                    {"id", call.id},
                                    {"client", call.client},
                                    {"traceparent", call.trace}}) {
    if (!value.empty()) line[name] = value;
  }
  line.update({{"status", response.status},
               {"rows", rows},
               {"bytes", call.bytes},
               {"answer_bytes", response.body.size()},
               {"ms", std::round(seconds * 1e5) / 100}});
  if (response.status >= 400) line["answer"] = response.body.substr(0, 300);
  const Severity severity = response.status >= 500   ? Severity::kError
                            : response.status >= 400 ? Severity::kWarning
                                                     : Severity::kInfo;
  if (options_.log_requests) return log_.write_always(severity, "request", line);
  log_.write(severity, "request", line);
}

// In a time that does not depend on where the tokens differ.
bool InferenceApi::is_allowed(const HttpRequest& request) const {
  if (options_.token.empty() || request.path.starts_with("/v2/health/")) return true;
  const std::string expected = "Bearer " + options_.token, given = request.header("authorization");
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

void InferenceApi::handle(HttpRequest request, HttpServer::Respond respond) {
  constexpr size_t kSmall = 65'536;  // bytes, read in a millisecond
  const auto call = std::make_shared<Call>(Call{.respond = std::move(respond),
                                                .path = request.path,
                                                .method = request.method,
                                                .client = request.client,
                                                .trace = trace_of(request),
                                                .bytes = request.body.size(),
                                                .model = "",
                                                .what = "other",
                                                .start = std::chrono::steady_clock::now(),
                                                .deadline = request.deadline});
  if (!is_allowed(request)) {
    HttpResponse response = error_response(401, "a bearer token is needed");
    response.headers["WWW-Authenticate"] = "Bearer";
    return finish(*call, std::move(response));
  }
  if (request.path.starts_with("/v2/health/")) return work_on(request, call);
  const bool small = request.body.size() <= kSmall && request.header("content-encoding").empty();
  if (!small) large_ = true;
  const auto kept = std::make_shared<HttpRequest>(std::move(request));
  (small ? quick_ : bulk_).put([this, kept, call] { work_on(*kept, call); });
}

void InferenceApi::work_on(HttpRequest& request, const CallPointer& call) {
  try_to(*call, [&] {
    std::optional<HttpResponse> refusal = foreign_page_response(request);
    if (!refusal) refusal = unpack_body(request, options_.body);
    if (refusal) return finish(*call, std::move(*refusal));
    route(request, call);
  });
}

// Answers what goes wrong, and does nothing where nobody waits.
void InferenceApi::try_to(const Call& call, const std::function<void()>& work) {
  try {
    if (call.deadline->is_over()) return finish(call, error_response(503, kNobodyWaits));
    work();
  } catch (const Error& error) {
    finish(call, error_response(400, error.what()));
  } catch (const std::exception& error) {
    if (ran_out_of_memory(error)) return finish(call, error_response(503, Batcher::kOutOfMemory));
    finish(call, error_response(500, error.what()));
  }
}

// Much is done by the workers for large bodies: the thread that is here has others to answer.
void InferenceApi::do_soon(size_t rows, const CallPointer& call,
                           const std::function<void()>& work) {
  constexpr size_t kMany = 1'000;  // each at each level
  if (rows <= kMany) return try_to(*call, work);
  large_ = true;
  bulk_.put([this, call, work] { try_to(*call, work); });
}

void InferenceApi::trim_memory() {
  const auto now = std::chrono::steady_clock::now();
  if (!large_ || now < trimmed_ + std::chrono::seconds(1)) return;
  trimmed_ = now;
  large_ = false;
  bulk_.put([] { malloc_trim(0); });
}

void InferenceApi::end() {
  quick_.end();
  bulk_.end();
}

void InferenceApi::route(const HttpRequest& request, const CallPointer& call) {
  const std::string& path = request.path;
  constexpr std::string_view kModels = "/v2/models/";
  if (path.starts_with(kModels)) return route_model(request, path.substr(kModels.size()), call);
  const bool health = path == "/v2/health/live" || path == "/v2/health/ready";
  const bool known = health || path == "/v2" || path == "/v2/" || path == "/metrics" ||
                     path == "/status" || path == "/";
  if (!known) return finish(*call, error_response(404, "there is nothing here; see /v2"));
  if (!request.reads()) return finish(*call, not_allowed("GET, HEAD"));
  if (path == "/v2/health/live") return finish(*call, json_response({{"live", true}}));
  if (health) {
    const std::string problem = trouble();
    if (!problem.empty()) return finish(*call, error_response(503, problem));
    return finish(*call, json_response({{"ready", true}}));
  }
  if (path == "/metrics") return finish(*call, metrics_page());
  if (path == "/status") return finish(*call, status());
  if (path == "/") return finish(*call, plain("text/html; charset=utf-8", status_page()));
  finish(*call, server_facts());
}

void InferenceApi::route_model(const HttpRequest& request, std::string rest,
                               const CallPointer& call) {
  const std::string name = next_part(rest);
  std::string what = next_part(rest), version;
  if (what == "versions") {
    version = next_part(rest);
    what = next_part(rest);
  }
  const auto batcher = models_.find(name, version);
  if (!batcher) {
    return finish(*call, error_response(404, version.empty() ? "there is no such model"
                                                             : "there is no such version"));
  }
  const bool posts = what == "infer" || what == "feedback";
  if (!rest.empty() || (!posts && !what.empty() && what != "ready")) {
    return finish(*call, error_response(404, "there is nothing here; see /v2"));
  }
  call->model = name;
  if (posts ? request.method != "POST" : !request.reads()) {
    return finish(*call, not_allowed(posts ? "POST" : "GET, HEAD"));
  }
  if (what.empty()) return finish(*call, model_facts(*batcher->model()));
  if (what == "ready") return finish(*call, json_response({{"name", name}, {"ready", true}}));
  if (what == "infer") return infer(request, *batcher, call);
  feedback(request, batcher->model(), call);
}

void InferenceApi::count_cells(const ServedModel& model, const TensorRequest& asked) {
  for (const CellCounts& one : model.count_cells(asked)) {
    const std::string who = concat(label("model", model.name()), ",", label("column", one.column));
    if (one.missing > 0) {
      metrics_.add("fcp_cells_missing_total", who, static_cast<double>(one.missing));
    }
    if (one.unknown > 0) {
      metrics_.add("fcp_categories_unknown_total", who, static_cast<double>(one.unknown));
    }
  }
}

void InferenceApi::infer(const HttpRequest& request, Batcher& batcher, const CallPointer& call) {
  call->what = "infer";
  const std::shared_ptr<const ServedModel> model = batcher.model();
  TensorLimits limits = options_.limits;
  limits.values = limits.rows * std::max<size_t>(1, model->row_size());
  const auto asked = std::make_shared<TensorRequest>(
      parse_tensor_request(request.body, json_size(request), limits));
  if (asked->timeout) call->deadline->shorten(std::chrono::duration<double>(*asked->timeout));
  std::optional<Level> adapted;
  if (state_ != nullptr && asked->alpha.empty()) adapted = state_->adapted_level(*model);
  const std::vector<Level> levels =
      adapted ? std::vector<Level>{*adapted} : model->levels(asked->alpha, options_.level);
  internal::BatchData rows = model->rows_of(*asked);
  count_cells(*model, *asked);
  asked->inputs = {};  // they stand in the rows now
  model->draw_places(rows);
  call->rows = rows.rows();
  if (state_ != nullptr) model->check_kept(rows);
  if (state_ != nullptr && asked->id.empty()) asked->id = fresh_id();
  call->id = asked->id;
  const auto give = [this, asked, model, levels, adapted, rows,
                     call](const internal::AnswerData& answer) {
    const auto given = std::make_shared<const GivenAnswer>(GivenAnswer{
        model->tensors(answer), levels, adapted, static_cast<int64_t>(model->facts().version)});
    count_regions(*given, *call);
    if (state_ == nullptr) return answer_infer(asked, given, call);
    remember(asked, model, rows, given, call);
  };
  const auto answered = [this, give, call](const internal::AnswerData* answer,
                                           const std::string& error) {
    if (answer == nullptr) {
      const bool ours = error == Batcher::kOutOfMemory || call->deadline->is_over();
      return finish(*call, error_response(ours ? 503 : 400, error));
    }
    do_soon(call->rows * answer->levels.size(), call, [give, answer = *answer] { give(answer); });
  };
  if (!batcher.put(std::move(rows), levels, call->deadline, answered)) {
    finish(*call, error_response(503, "too many rows wait; try again later"));
  }
}

// Answers what was kept before under the same id, where it is the same request. Where the state is
// optional and cannot be had, the answer is given and counted as not remembered.
void InferenceApi::remember(const RequestPointer& asked,
                            const std::shared_ptr<const ServedModel>& model,
                            const internal::BatchData& rows, const GivenPointer& given,
                            const CallPointer& call) {
  const auto without = [this, asked, given, call](const char* why) {
    if (!options_.state_optional) return finish(*call, error_response(503, why));
    metrics_.add("fcp_not_remembered_total", label("model", call->model),
                 static_cast<double>(call->rows));
    answer_infer(asked, given, call);
  };
  if (options_.state_optional && !state_->is_healthy()) return without(kStateDown);
  const auto done = [this, asked, rows, given, call, without](const std::string& problem,
                                                              const LiveState::Kept& kept) {
    if (!problem.empty()) return without(kStateDown);
    if (kept.empty()) return answer_infer(asked, given, call);
    answer_again(asked, kept, rows, given->levels, call);
  };
  // A box does not tell whether a truth is in the region: the version that predicted must judge.
  std::vector<std::string> answers;
  if (!model->artifact().method.score.traits().boxed) answers = kept_answers(*given);
  const bool put =
      state_->remember({model, asked->id, rows, std::move(answers), given->adapted}, done);
  if (!put) without("too many requests wait; try again later");
}

void InferenceApi::answer_again(const RequestPointer& asked, const LiveState::Kept& kept,
                                const internal::BatchData& rows, const std::vector<Level>& levels,
                                const CallPointer& call) {
  try {
    const torch::Tensor x = rows.x.to(torch::kFloat).contiguous();
    const std::span<const float> numbers(x.data_ptr<float>(), static_cast<size_t>(x.numel()));
    const auto named = asked->alpha.empty() ? std::vector<Level>() : levels;
    const auto again = repeated_answer(kept, numbers, rows.rows(), named);
    if (again) return answer_infer(asked, std::make_shared<const GivenAnswer>(*again), call);
    finish(*call, error_response(409, "the id is in use already, by another request"));
  } catch (const std::exception& error) {
    finish(*call, error_response(500, error.what()));
  }
}

// By the first level that was asked for.
void InferenceApi::count_regions(const GivenAnswer& given, const Call& call) {
  const RegionCounts counts = counts_of(given);
  const std::string who = label("model", call.model);
  metrics_.add("fcp_answers_unbounded_total", who, static_cast<double>(counts.unbounded));
  metrics_.add("fcp_answers_empty_total", who, static_cast<double>(counts.empty));
}

void InferenceApi::answer_infer(const RequestPointer& asked, const GivenPointer& given,
                                const CallPointer& call) {
  do_soon(call->rows * given->levels.size(), call,
          [this, asked, given, call] { write_answer(*asked, *given, *call); });
}

void InferenceApi::write_answer(const TensorRequest& asked, const GivenAnswer& given,
                                const Call& call) {
  TensorText text =
      tensor_response_text({call.model, std::to_string(given.version), asked.id,
                            asked_tensors(given.tensors, asked), level_of(given.levels)});
  HttpResponse response = plain(text.header_size ? "application/octet-stream" : "application/json",
                                std::move(text.body));
  if (text.header_size) {
    response.headers["Inference-Header-Content-Length"] = std::to_string(*text.header_size);
  }
  finish(call, std::move(response));
}

void InferenceApi::feedback(const HttpRequest& request,
                            const std::shared_ptr<const ServedModel>& model,
                            const CallPointer& call) {
  call->what = "feedback";
  if (state_ == nullptr) {
    return finish(*call, error_response(404, "feedback is not kept: the server has no state"));
  }
  auto told = std::make_shared<std::vector<TruthReport>>(
      parse_feedback(request.body, model->class_names(), options_.limits.rows));
  const bool put = state_->learn(
      model->name(), *told, call->deadline,
      [this, told, call](const std::vector<TruthResult>& results, const std::string& error) {
        if (!error.empty()) return finish(*call, error_response(503, kStateDown));
        count_truths(results, *call);
        finish(*call, {.body = feedback_text(*told, results)});
      });
  if (!put) finish(*call, error_response(503, "too many requests wait; try again later"));
}

void InferenceApi::count_truths(const std::vector<TruthResult>& results, const Call& call) {
  const std::string who = label("model", call.model) + ",";
  for (const TruthResult& one : results) {
    if (one.status == "accepted") {
      metrics_.add("fcp_truths_total", who + label("covered", one.covered ? "true" : "false"));
    } else {
      metrics_.add("fcp_truths_refused_total", who + label("status", one.status));
    }
  }
}

// "" where requests can be answered, or what is in the way.
std::string InferenceApi::trouble() const {
  if (!ready_) return "the server is ending";
  if (state_ != nullptr && !options_.state_optional && !state_->is_healthy()) return kStateDown;
  for (const std::string& name : models_.names()) {
    const auto batcher = models_.find(name);
    if (batcher != nullptr && batcher->is_full()) return "too many rows wait; try again later";
  }
  return "";
}

HttpResponse InferenceApi::server_facts() const {
  return json_response({{"name", "fcp"},
                        {"version", FCP_VERSION},
                        {"extensions", {"binary_tensor_data"}},
                        {"models", models_.names()}});
}

HttpResponse InferenceApi::model_facts(const ServedModel& model) const {
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
                        {"alpha", options_.level.value()}};
  return json_response(json);
}

HttpResponse InferenceApi::status() const {
  Json json = {{"feedback", state_ != nullptr}, {"models", Json::array()}};
  for (const std::string& name : models_.names()) {
    const auto batcher = models_.find(name);
    Json one = {{"name", name},
                {"version", batcher->model()->version()},
                {"columns", batcher->model()->columns()},
                {"score", batcher->model()->facts().score},
                {"alpha", options_.level.value()}};
    const auto level =
        state_ == nullptr ? std::optional<Level>() : state_->adapted_level(*batcher->model());
    if (level) one["level"] = level->value();
    const auto live = state_ == nullptr ? std::optional<LiveReport>() : state_->live_report(name);
    if (live) {
      one["monitor"] = monitor_json(live->monitor);
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
void InferenceApi::measure_models() const {
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
void InferenceApi::measure_monitor(const std::string& name) const {
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

HttpResponse InferenceApi::metrics_page() const {
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
  return plain(Metrics::kType, metrics_.text());
}

}  // namespace fcp
