// fcp serve: calibrated predictors over HTTP.
#include "apps/server/serve.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"

#include "apps/cli/common.h"

namespace fcp::cli {
namespace {

struct ServeFlags {
  CommonOptions common;
  ServeOptions serve;
  std::string alpha = "0.1";
  AdaptOptions adapt{.method = "", .step = 0.005};
  std::string token_file;
};

std::string read_token(const std::string& path) {
  if (path.empty()) return "";
  std::ifstream file(path);
  std::string token;
  if (!file || !std::getline(file, token) || token.empty()) {
    fail(path, ": expected a token on its first line");
  }
  return token;
}

bool signal_came() {
  try {
    check_interrupted();
    return false;
  } catch (const Interrupted&) {
    return true;
  }
}

volatile std::sig_atomic_t hangup = 0;

bool hangup_came() {
  const bool came = hangup != 0;
  hangup = 0;
  return came;
}

// SIGHUP reads files again. A client, or a reader of the log, that goes away ends nothing.
void set_signals() {
  std::signal(SIGHUP, [](int) { hangup = 1; });
  std::signal(SIGPIPE, SIG_IGN);
}

// One line per event on stderr, with the time in front.
void log_line(const std::string& line) {
  static std::mutex mutex;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double seconds = std::chrono::duration<double>(now).count();
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", seconds);
  const std::lock_guard lock(mutex);
  std::cerr.clear();  // a line that could not be written is lost, later ones are not
  std::cerr << concat("{\"time\":", time, ",", line.substr(1), "\n") << std::flush;
}

void run_serve(ServeFlags& flags) {
  const Context context = start(flags.common);
  ServeOptions& options = flags.serve;
  options.api.level = options.live.monitor.level = parse_level(flags.alpha);
  if (!flags.adapt.method.empty()) {
    if (options.state.empty()) throw UsageError("--adapt needs --state, which keeps the truths");
    options.live.adapt = flags.adapt;
  }
  options.api.token = read_token(flags.token_file);
  if (!flags.token_file.empty()) {
    options.read_token = [file = flags.token_file] { return read_token(file); };
  }
  options.reload_asked = hangup_came;
  set_signals();
  options.live.monitor.seed = flags.common.seed;
  if (options.live.optional && options.state.empty()) {
    throw UsageError("--state-optional needs --state");
  }
  options.api.state_optional = options.live.optional;
  options.device = context.device;
  const bool quiet = flags.common.quiet;
  serve(options, signal_came, [quiet](const std::string& line) {
    if (!quiet) log_line(line);
  });
}

void add_state_flags(CLI::App& verb, ServeFlags& flags) {
  ServeOptions& options = flags.serve;
  verb.add_option("--state", options.state,
                  "Folder, or postgresql://…, that keeps predictions and truths: allows feedback "
                  "and monitoring");
  const CLI::Range count(size_t{1}, size_t{1'000'000'000});
  verb.add_flag("--state-optional", options.live.optional,
                "State: answer requests that cannot be stored, and count them");
  verb.add_option("--keep", options.kept.waiting,
                  "State: maximum number of predictions that wait for their truth")
      ->check(count)
      ->capture_default_str();
  verb.add_option("--keep-truths", options.kept.truths, "State: maximum number of truths")
      ->check(count)
      ->capture_default_str();
  verb.add_option("--false-alarms", options.live.monitor.false_alarms,
                  "State: chance of any false alarm over all time")
      ->check(CLI::Range(1e-9, 0.5))
      ->capture_default_str();
  verb.add_option("--adapt", flags.adapt.method,
                  "State: requests that name no level are answered at one that follows the truths, "
                  "so that in the long run a share of --alpha is missed; dtaci needs no step size")
      ->check(CLI::IsMember({"aci", "dtaci"}));
  verb.add_option("--step", flags.adapt.step, "Adapt by aci: how far each truth moves the level")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

// What is 0 or negative, or would overflow, is a mistake of whoever started the server.
void add_limits(CLI::App& verb, ServeOptions& options) {
  const CLI::Range bytes(size_t{1024}, size_t{1} << 30), count(size_t{1}, size_t{1'000'000'000});
  const CLI::Range seconds(0.001, 1e6);
  verb.add_option("--max-body", options.http.limits.body,
                  "Maximum bytes of a request, packed and unpacked, such as 64MB; 1KB to 1GB")
      ->transform(CLI::AsSizeValue(false))
      ->check(bytes)
      ->default_str("8MB");
  verb.add_option("--max-rows", options.api.limits.rows, "Maximum rows of a request")
      ->check(count)
      ->capture_default_str();
  verb.add_option("--max-connections", options.http.connections, "Maximum number of connections")
      ->check(count)
      ->capture_default_str();
  verb.add_option("--max-per-client", options.http.client_connections,
                  "Maximum connections of one address; 0: no limit")
      ->check(CLI::Range(size_t{0}, size_t{1'000'000'000}))
      ->capture_default_str();
  verb.add_option("--rate", options.http.client_rate,
                  "Requests per second of one address; beyond them 429; 0: no limit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  verb.add_option("--max-queue", options.batches.queued_rows,
                  "Rows of a model that may wait; beyond them requests are answered 503")
      ->check(count)
      ->capture_default_str();
  verb.add_option("--timeout", options.http.answer_seconds,
                  "Seconds from a whole request to its answer; later it is 503 and the work ends")
      ->check(seconds)
      ->capture_default_str();
  verb.add_option("--request-seconds", options.http.request_seconds,
                  "Time for a request to come whole and for its answer to be taken")
      ->check(seconds)
      ->capture_default_str();
  verb.add_option("--idle-seconds", options.http.idle_seconds,
                  "Time between requests before a connection is closed")
      ->check(seconds)
      ->capture_default_str();
}

}  // namespace

void add_serve(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* verb = app.add_subcommand(
      "serve", "Serve calibrated predictors over HTTP: the Open Inference Protocol v2");
  verb->footer(
      "Examples:\n"
      "  fcp serve calibrated.onnx\n"
      "  fcp serve price=price.onnx demand=demand.onnx --port 9000 --state state/\n"
      "  fcp serve calibrated.onnx --state postgresql:///fcp --adapt dtaci\n"
      "  curl localhost:8080/v2/models/calibrated\n"
      "SIGTERM and SIGINT end it after all requests in work are answered. A file that is replaced\n"
      "is loaded without dropping a request; SIGHUP reads models, certificate and token at once.");
  ServeOptions& options = flags->serve;
  verb->add_option("models", options.models, "Calibrated predictors: FILE or NAME=FILE")
      ->required();
  verb->add_option("--host", options.http.host, "Address to listen on")->capture_default_str();
  verb->add_option("--port", options.http.port, "Port; 0: any that is free")->capture_default_str();
  verb->add_option("--alpha", flags->alpha, "Level of requests that name none")
      ->capture_default_str();
  add_state_flags(*verb, *flags);
  verb->add_option("--token-file", flags->token_file,
                   "File whose first line clients must send as Authorization: Bearer …");
  auto* certificate = verb->add_option("--tls-cert", options.http.certificate,
                                       "Certificate in PEM, with its chain: serve HTTPS");
  auto* key = verb->add_option("--tls-key", options.http.key, "Its key in PEM");
  certificate->needs(key);
  key->needs(certificate);
  verb->add_option("--reload-seconds", options.reload_seconds,
                   "Seconds between checks of the files; 0: only at SIGHUP")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  verb->add_flag("--log-requests", options.api.log_requests, "A line per request on stderr");
  add_limits(*verb, options);
  add_common(*verb, flags->common, kTakesSeed | kTakesThreads | kTakesDevice);
  verb->callback([flags] { run_serve(*flags); });
}

}  // namespace fcp::cli
