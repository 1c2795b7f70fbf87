// What a server logs: lines of JSON with a severity and the name of an event. A kind of event that
// comes too often is dropped, and its next line says how many were.
// Tested by tests/server/server_log_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/server/rate_limit.h"

namespace fcp {

enum class Severity { kInfo, kWarning, kError };

class ServerLog {
 public:
  using Fields = nlohmann::ordered_json;

  // `sink` takes lines from any thread.
  explicit ServerLog(std::function<void(const std::string&)> sink) : sink_(std::move(sink)) {}

  // {"severity":"INFO","event":"loaded",…}
  void write(Severity severity, const std::string& event, const Fields& fields);
  // Also where there are many: a log of all requests is asked for.
  void write_always(Severity severity, const std::string& event, const Fields& fields) const;

 private:
  static constexpr double kPerSecond = 10;

  std::function<void(const std::string&)> sink_;
  std::mutex mutex_;
  RateLimit rate_{kPerSecond};
  std::map<std::string, uint64_t> dropped_;  // by event
};

}  // namespace fcp
