#include "apps/server/serve.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "fcp/base/error.h"

#include "apps/server/metrics.h"

namespace fcp {
namespace {

using Fields = ServerLog::Fields;

void log_loaded(ServerLog& log, const ModelStore& models, const ServedModel& model) {
  log.write(Severity::kInfo, "loaded",
            {{"model", model.name()},
             {"version", model.version()},
             {"sha256", model.sha256()},
             {"task", task_of(model)},
             {"versions", models.versions(model.name())}});
}

// What is on disk is not what is served.
void tell_not_loaded(ServerLog& log, Metrics& metrics, const char* what, Fields fields) {
  metrics.add("fcp_reload_failures_total", label("what", what));
  fields["what"] = what;
  log.write(Severity::kError, "not loaded", fields);
}

// Looks at the files of the models from time to time, and when it is asked to, in a thread of its
// own: loading takes longer than a request may wait.
class Reloader {
 public:
  // seconds: between two looks; 0: only when it is asked to.
  Reloader(ModelStore& models, double seconds, ServerLog& log, Metrics& metrics)
      : models_(models),
        log_(log),
        metrics_(metrics),
        thread_([this, seconds] { work(seconds); }) {}
  ~Reloader() {
    ended_ = true;
    thread_.join();
  }
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  void look_at_once() { at_once_ = true; }

 private:
  void work(double seconds) {
    const std::chrono::milliseconds between(static_cast<int64_t>(seconds * 1000));
    auto next = std::chrono::steady_clock::now();
    while (!ended_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const bool asked = at_once_.exchange(false);
      if (!asked && (seconds <= 0 || std::chrono::steady_clock::now() < next)) continue;
      look(asked);
      next = std::chrono::steady_clock::now() + between;
    }
  }

  void look(bool at_once) {
    const auto hear = [this](const Reloaded& one) {
      if (one.model != nullptr) return log_loaded(log_, models_, *one.model);
      tell_not_loaded(log_, metrics_, "model", {{"model", one.name}, {"error", one.error}});
    };
    models_.reload(hear, at_once);
  }

  ModelStore& models_;
  ServerLog& log_;
  Metrics& metrics_;
  std::atomic<bool> ended_ = false, at_once_ = false;
  std::thread thread_;
};

// Alarms of monitors, and trouble with the store and its end.
Severity severity_of(const std::string& text) {
  if (text.starts_with("alarm: ")) return Severity::kWarning;
  return text == LiveState::kWorksAgain ? Severity::kInfo : Severity::kError;
}

// Certificate and token, each by itself: where one cannot be read the other is taken.
void read_secrets(const ServeOptions& options, HttpServer& server, InferenceApi& api,
                  ServerLog& log, Metrics& metrics) {
  try {
    server.read_certificate();
  } catch (const Error& error) {
    tell_not_loaded(log, metrics, "certificate", {{"error", error.what()}});
  }
  try {
    if (options.read_token) api.set_token(options.read_token());
  } catch (const Error& error) {
    tell_not_loaded(log, metrics, "token", {{"error", error.what()}});
  }
}

HttpOptions heard_options(const HttpOptions& options, ServerLog& log, Metrics& metrics) {
  HttpOptions heard = options;
  heard.refused = [&](int status, const std::string& why, const std::string& client) {
    metrics.add("fcp_http_refused_total", label("status", std::to_string(status)));
    log.write(Severity::kWarning, "refused",
              {{"status", status}, {"why", why}, {"client", client}});
  };
  return heard;
}

Batcher::Options measured_options(const Batcher::Options& options, Metrics& metrics) {
  Batcher::Options measured = options;
  measured.ran = [&metrics](const ServedModel& model, size_t rows) {
    metrics.observe("fcp_batch_rows", label("model", model.name()), static_cast<double>(rows));
  };
  return measured;
}

}  // namespace

void serve(const ServeOptions& options, const std::function<bool()>& ended,
           const std::function<void(const std::string&)>& sink) {
  ServerLog log(sink);
  Metrics metrics;
  for (const char* what : {"certificate", "model", "token"}) {
    metrics.add("fcp_reload_failures_total", label("what", what), 0);
  }
  ModelStore models(options.models, options.device, measured_options(options.batches, metrics));
  std::unique_ptr<LiveState> state;
  if (!options.state.empty()) {
    state = std::make_unique<LiveState>(
        [&] { return open_feedback_store(options.state, options.kept); }, models, options.live,
        [&](const std::string& text) {
          log.write(severity_of(text), "monitor", {{"what", text}});
        });
  }
  ApiOptions api_options = options.api;
  api_options.body = options.http.limits.body;
  InferenceApi api(api_options, models, state.get(), metrics, log);
  HttpServer server(heard_options(options.http, log, metrics),
                    [&](HttpRequest request, HttpServer::Respond respond) {
                      api.handle(std::move(request), std::move(respond));
                    });
  auto reloader = std::make_unique<Reloader>(models, options.reload_seconds, log, metrics);
  log.write(Severity::kInfo, "listening",
            {{"host", options.http.host},
             {"port", server.port()},
             {"tls", !options.http.certificate.empty()},
             {"models", models.names()}});
  for (const std::string& name : models.names()) {
    log_loaded(log, models, *models.find(name)->model());
  }
  bool draining = false;
  server.run([&] {
    metrics.set("fcp_connections", "", static_cast<double>(server.connections()));
    metrics.set("fcp_requests_in_work", "", static_cast<double>(server.in_work()));
    metrics.set("fcp_requests_limited_total", "", static_cast<double>(server.limited()));
    api.trim_memory();
    if (options.reload_asked && options.reload_asked()) {
      log.write(Severity::kInfo, "reloading", Fields::object());
      reloader->look_at_once();
      read_secrets(options, server, api, log, metrics);
    }
    if (draining || !ended()) return;
    draining = true;
    api.begin_end();
    log.write(Severity::kInfo, "draining", {{"in_work", server.in_work()}});
    server.drain();
  });
  // Work that nobody waits for any more may be left; it ends before what it uses does.
  reloader.reset();
  api.end();
  models.clear();
  state.reset();
  log.write(Severity::kInfo, "ended", Fields::object());
}

}  // namespace fcp
