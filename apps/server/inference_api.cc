#include "apps/server/inference_api.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <malloc.h>
#include <nlohmann/json.hpp>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "fcp/base/error.h"
#include "fcp/version.h"

#include "apps/server/json_messages.h"
#include "apps/server/status_page.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSmall = 65'536;  // bytes, read or written in a millisecond

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

}  // namespace

InferenceApi::InferenceApi(const ApiOptions& options, ModelStore& models, LiveState* state,
                           Metrics& metrics, ServerLog& log)
    : options_(options),
      models_(models),
      state_(state),
      metrics_(metrics),
      log_(log),
      facts_(options.level, models, state, options.state_optional, metrics) {}

void InferenceApi::finish(const Call& call, HttpResponse response) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - call.start).count();
  if (std::max(call.bytes, response.body.size()) > kSmall) {
    large_ = std::chrono::steady_clock::now();
  }
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

// In a time that does not depend on where the tokens differ. The page itself tells nothing: it asks
// for the token, and the server for what it shows.
bool InferenceApi::is_allowed(const HttpRequest& request) const {
  const bool open = request.path == "/" || request.path.starts_with("/v2/health/");
  if (options_.token.empty() || open) return true;
  const std::string expected = "Bearer " + options_.token, given = request.header("authorization");
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

void InferenceApi::handle(HttpRequest request, HttpServer::Respond respond) {
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
  const bool at_once = request.path.starts_with("/v2/health/") && request.body.empty();
  if (at_once) return work_on(request, call);
  const bool small = request.body.size() <= kSmall && request.header("content-encoding").empty();
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
    if (call.deadline->is_over()) return finish(call, error_response(503, Batcher::kTimeIsOver));
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
  bulk_.put([this, call, work] { try_to(*call, work); });
}

// A second after the last large answer, when it has been sent, and while they go on now and then.
void InferenceApi::trim_memory() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  Clock::time_point last = large_;
  if (last == Clock::time_point()) return;
  const bool ended = now >= last + std::chrono::seconds(1);
  if (!ended && now < trimmed_ + std::chrono::seconds(10)) return;
  trimmed_ = now;
  if (ended) large_.compare_exchange_strong(last, Clock::time_point());
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
  if (health) return finish(*call, facts_.health());
  if (path == "/metrics") return finish(*call, facts_.metrics());
  if (path == "/status") return finish(*call, facts_.status());
  if (path == "/") {
    return finish(*call, {.type = "text/html; charset=utf-8", .body = status_page()});
  }
  finish(*call, facts_.server());
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
  if (what.empty()) return finish(*call, facts_.model(*batcher->model()));
  if (what == "ready") return finish(*call, json_response({{"name", name}, {"ready", true}}));
  if (what == "infer") return infer(request, *batcher, call);
  feedback(request, batcher->model(), call);
}

void InferenceApi::count_cells(const ServedModel& model, const TensorRequest& asked,
                               const internal::BatchData& rows) {
  for (const CellCounts& one : model.count_cells(asked, rows)) {
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
  model->added(*asked, {});  // what cannot be had is refused before anything is computed
  internal::BatchData rows = model->rows_of(*asked);
  count_cells(*model, *asked, rows);
  if (asked->flags) call->flags = ServedModel::flags(rows);
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
    call->added = model->added(*asked, rows);
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
  std::vector<ResponseTensor> all = given.tensors;
  all.insert(all.end(), call.added.begin(), call.added.end());
  std::vector<ResponseTensor> tensors = asked_tensors(all, asked);
  if (call.flags) {
    tensors.push_back(*call.flags);
    tensors.back().binary = asked.binary_outputs;
  }
  TensorText text = tensor_response_text({call.model, std::to_string(given.version), asked.id,
                                          std::move(tensors), level_of(given.levels)});
  HttpResponse response{.body = std::move(text.body)};
  if (text.header_size) {
    response.type = "application/octet-stream";
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

}  // namespace fcp
