// The routes of the server: the Open Inference Protocol v2, feedback, metrics, status and a page.
//
//   GET  /v2/health/live, /v2/health/ready, /v2
//   GET  /v2/models/NAME[/versions/V], …/ready
//   POST /v2/models/NAME[/versions/V]/infer
//   POST /v2/models/NAME/feedback
//   GET  /metrics, /status, /
//
// handle() is called by the event loop and only looks at path and token; bodies are read by
// workers, large ones by workers of their own, so that they keep nobody waiting. Answers are given
// later, from the thread that has them. No path of a file is ever taken from a request. What the
// server says of itself is in server_facts.h.
// Tested by tests/cli/test_serve.py.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/level.h"

#include "apps/server/http_server.h"
#include "apps/server/live_state.h"
#include "apps/server/metrics.h"
#include "apps/server/model_store.h"
#include "apps/server/repeated_request.h"
#include "apps/server/server_facts.h"
#include "apps/server/workers.h"

namespace fcp {

struct ApiOptions {
  Level level = Level(0.1);  // where a request does not say
  TensorLimits limits{};
  std::string token{};  // a client must send it; "": none
  bool log_requests = false;
  size_t body = HttpLimits().body;  // bytes of an unpacked body at most
  bool state_optional = false;      // answers what cannot be remembered
};

class InferenceApi {
 public:
  // state: null without feedback. All must outlive this.
  InferenceApi(const ApiOptions& options, ModelStore& models, LiveState* state, Metrics& metrics,
               ServerLog& log);

  void handle(HttpRequest request, HttpServer::Respond respond);

  // Not ready any more.
  void begin_end() { facts_.end(); }

  // From the thread that calls handle().
  void set_token(std::string token) { options_.token = std::move(token); }

  // Gives memory back to the system, some time after a large request. To be called now and then.
  void trim_memory();

  // Ends the workers, after what they have to do; requests that come later are answered 503.
  void end();

 private:
  // A request on its way: who is told, and what is counted when it is answered.
  struct Call {
    HttpServer::Respond respond;
    std::string path;
    std::string method, client, trace;  // for the log
    size_t bytes = 0;                   // of the request's body
    std::string id{};
    std::string model;
    std::string what;
    std::optional<ResponseTensor> flags{};  // where they are asked for
    size_t rows = 0;
    std::vector<ResponseTensor> added{};  // to the regions of the answer
    std::chrono::steady_clock::time_point start;
    std::shared_ptr<Deadline> deadline;
  };
  using CallPointer = std::shared_ptr<Call>;

  void finish(const Call& call, HttpResponse response);
  void log_call(const Call& call, const HttpResponse& response, size_t rows, double seconds);
  void work_on(HttpRequest& request, const CallPointer& call);
  bool is_allowed(const HttpRequest& request) const;
  void route(const HttpRequest& request, const CallPointer& call);
  void route_model(const HttpRequest& request, std::string rest, const CallPointer& call);
  void infer(const HttpRequest& request, Batcher& batcher, const CallPointer& call);
  using RequestPointer = std::shared_ptr<const TensorRequest>;
  using GivenPointer = std::shared_ptr<const GivenAnswer>;
  void count_cells(const ServedModel& model, const TensorRequest& asked,
                   const internal::BatchData& rows);
  void remember(const RequestPointer& asked, const std::shared_ptr<const ServedModel>& model,
                const internal::BatchData& rows, const GivenPointer& given,
                const CallPointer& call);
  void answer_again(const RequestPointer& asked, const LiveState::Kept& kept,
                    const internal::BatchData& rows, const std::vector<Level>& levels,
                    const CallPointer& call);
  void answer_infer(const RequestPointer& asked, const GivenPointer& given,
                    const CallPointer& call);
  void write_answer(const TensorRequest& asked, const GivenAnswer& given, const Call& call);
  void do_soon(size_t rows, const CallPointer& call, const std::function<void()>& work);
  void try_to(const Call& call, const std::function<void()>& work);
  void count_regions(const GivenAnswer& given, const Call& call);
  void count_truths(const std::vector<TruthResult>& results, const Call& call);
  void feedback(const HttpRequest& request, const std::shared_ptr<const ServedModel>& model,
                const CallPointer& call);

  ApiOptions options_;
  ModelStore& models_;
  LiveState* state_;
  Metrics& metrics_;
  ServerLog& log_;
  ServerFacts facts_;
  // When the last large request was answered; none: its memory has been given back.
  std::atomic<std::chrono::steady_clock::time_point> large_{};
  std::chrono::steady_clock::time_point trimmed_{};
  Workers quick_{2}, bulk_{1};  // for small bodies and for the others
};

}  // namespace fcp
