// What a server says of itself: facts of the server and its models, whether it is ready, /status
// for the page, and /metrics.
// Tested by tests/cli/test_serve.py and test_serve_state.py.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "fcp/level.h"

#include "apps/server/http_message.h"
#include "apps/server/live_state.h"
#include "apps/server/metrics.h"
#include "apps/server/model_store.h"

namespace fcp {

// What is wrong is logged: it may name files and databases.
inline constexpr const char* kStateDown = "the state is unavailable; try again later";

class ServerFacts {
 public:
  // level: of requests that name none. state: null without feedback; state_optional: it may be
  // away. All must outlive this.
  ServerFacts(const Level& level, const ModelStore& models, const LiveState* state,
              bool state_optional, Metrics& metrics);

  // From now on the server is not ready.
  void end() { ending_ = true; }
  // Why requests cannot be answered; "": they can.
  std::string trouble() const;

  HttpResponse health() const;  // ready, or why not
  HttpResponse server() const;
  HttpResponse model(const ServedModel& model) const;
  HttpResponse status() const;
  HttpResponse metrics() const;

 private:
  void measure_models() const;
  void measure_monitor(const std::string& name) const;

  Level level_;
  const ModelStore& models_;
  const LiveState* state_;
  bool state_optional_;
  Metrics& metrics_;
  std::atomic<bool> ending_ = false;
  mutable std::mutex measuring_;  // one page at a time
};

}  // namespace fcp
