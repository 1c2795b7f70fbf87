#include "apps/server/serve.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using Log = std::function<void(const std::string&)>;

std::string event_line(const char* event, const nlohmann::ordered_json& more) {
  nlohmann::ordered_json line = {{"event", event}};
  line.update(more);
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string loaded_line(const ModelStore& models, const ServedModel& model) {
  return event_line("loaded", {{"model", model.name()},
                               {"version", model.version()},
                               {"sha256", model.sha256()},
                               {"task", task_of(model)},
                               {"versions", models.versions(model.name())}});
}

// Looks at the files of the models from time to time, in a thread of its own: loading takes longer
// than a request may wait.
class Reloader {
 public:
  Reloader(ModelStore& models, double seconds, const Log& log) {
    if (seconds <= 0) return;
    thread_ = std::thread([this, &models, seconds, &log] {
      auto next = std::chrono::steady_clock::now();
      while (!ended_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (std::chrono::steady_clock::now() < next) continue;
        models.reload([&](const Reloaded& one) {
          if (one.model != nullptr) return log(loaded_line(models, *one.model));
          log(event_line("not loaded", {{"model", one.name}, {"error", one.error}}));
        });
        next = std::chrono::steady_clock::now() +
               std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
      }
    });
  }
  ~Reloader() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

 private:
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace

void serve(const ServeOptions& options, const std::function<bool()>& ended, const Log& log) {
  Metrics metrics;
  Batcher::Options batches = options.batches;
  batches.ran = [&metrics](const ServedModel& model, size_t rows) {
    metrics.observe("fcp_batch_rows", label("model", model.name()), static_cast<double>(rows));
  };
  ModelStore models(options.models, options.device, batches);
  std::unique_ptr<LiveState> state;
  if (!options.state.empty()) {
    state = std::make_unique<LiveState>(
        [&] { return open_feedback_store(options.state, options.kept); }, models, options.live,
        [&](const std::string& text) {
          log(event_line("monitor", {{"what", text}}));
        });
  }
  ApiOptions api_options = options.api;
  api_options.body = options.http.limits.body;
  InferenceApi api(api_options, models, state.get(), metrics, log);
  HttpServer server(options.http, [&](HttpRequest request, HttpServer::Respond respond) {
    api.handle(std::move(request), std::move(respond));
  });
  auto reloader = std::make_unique<Reloader>(models, options.reload_seconds, log);
  log(event_line("listening", {{"host", options.http.host},
                               {"port", server.port()},
                               {"tls", !options.http.certificate.empty()},
                               {"models", models.names()}}));
  for (const std::string& name : models.names()) {
    log(loaded_line(models, *models.find(name)->model()));
  }
  bool draining = false;
  server.run([&] {
    metrics.set("fcp_connections", "", static_cast<double>(server.connections()));
    metrics.set("fcp_requests_in_work", "", static_cast<double>(server.in_work()));
    metrics.set("fcp_requests_limited_total", "", static_cast<double>(server.limited()));
    api.trim_memory();
    if (draining || !ended()) return;
    draining = true;
    api.set_ready(false);
    log(event_line("draining", {{"in_work", server.in_work()}}));
    server.drain();
  });
  // Work that nobody waits for any more may be left; it ends before what it uses does.
  reloader.reset();
  api.end();
  models.clear();
  state.reset();
  log(event_line("ended", nlohmann::ordered_json::object()));
}

}  // namespace fcp
