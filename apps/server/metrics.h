// What a server counts and measures, written the way Prometheus reads it: each name with its help
// and its type, and nothing that has not happened yet but the counters.
// Tested by tests/server/metrics_test.cc and tests/cli/test_production.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/server/workers.h"

namespace fcp {

// A label as it stands in a metric: label("model", "a\"b") is model="a\"b".
std::string label(const std::string& name, const std::string& value);

class Metrics {
 public:
  // A request that was answered: its model ("" where it names none), what it asked for, the status,
  // the rows and the seconds. Names come from the server's own lists, never from a request, so that
  // their number is bounded.
  void count(const std::string& model, const std::string& what, int status, size_t rows,
             double seconds);

  // All names are in the table of metrics.cc, which has their types; another one is an Error.
  // `labels` as text, by label().
  void add(const std::string& name, const std::string& labels = "", double by = 1);
  void set(const std::string& name, const std::string& labels, double value);
  // One value of a histogram.
  void observe(const std::string& name, const std::string& labels, double value);
  // Forgets all values of a name.
  void clear(const std::string& name);

  // The exposition format, version 0.0.4.
  std::string text() const;
  static constexpr const char* kType = "text/plain; version=0.0.4";

 private:
  struct Histogram {
    std::vector<uint64_t> buckets;  // one more than there are bounds
    double sum = 0;
    uint64_t count = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, double>> values_;         // by name, by labels
  std::map<std::string, std::map<std::string, Histogram>> histograms_;  // likewise
};

// Memory, processor time, open files and start of this process, by the names that all programs use.
void measure_process(Metrics& metrics);

// What a server logs: lines of JSON with a severity and the name of an event. A kind of event that
// comes too often is dropped, and its next line says how many were.
// Tested by tests/server/metrics_test.cc.

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
