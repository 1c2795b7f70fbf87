// The server as a whole: models, state, routes and connections, from options to the last answer.
// Tested by tests/cli/test_serve.py.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "apps/server/feedback_store.h"
#include "apps/server/http_server.h"
#include "apps/server/inference_api.h"
#include "apps/server/live_state.h"

namespace fcp {

struct ServeOptions {
  std::vector<std::string> models;  // files, or name=file
  std::string state{};              // folder or postgresql://…; "": feedback is not kept
  StoreLimits kept{};
  HttpOptions http{};
  ApiOptions api{};
  Batcher::Options batches{};
  LiveOptions live{};
  double reload_seconds = 1;  // between looks at the files; 0: only when it is asked for
  // Whether models, certificate and token are to be read again; asked ten times a second. none: no.
  std::function<bool()> reload_asked{};
  std::function<std::string()> read_token{};  // none: there is no token
  torch::Device device = torch::kCPU;
};

// Serves until `ended` says so, then answers what is in work and returns. `sink` takes log lines of
// JSON from any thread. An Error where a file cannot be served or the port cannot be had.
void serve(const ServeOptions& options, const std::function<bool()>& ended,
           const std::function<void(const std::string&)>& sink);

}  // namespace fcp
