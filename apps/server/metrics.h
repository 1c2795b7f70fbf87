// Counters of a server, written the way Prometheus reads them.
// Tested by tests/server/metrics_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace fcp {

class Metrics {
 public:
  // A request that was answered: its model ("" where it names none), what it asked for, the status,
  // the rows and the seconds.
  void count(const std::string& model, const std::string& what, int status, size_t rows,
             double seconds);
  // A number that goes up and down, as "fcp_connections"; `labels` as text: model="a".
  void set(const std::string& name, const std::string& labels, double value);

  // The exposition format, version 0.0.4.
  std::string text() const;
  static constexpr const char* kType = "text/plain; version=0.0.4";

 private:
  static constexpr std::array<double, 10> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                     0.025,  0.05,  0.1,    0.5,   2.5};
  struct Latency {
    std::array<uint64_t, kBounds.size() + 1> buckets{};
    double sum = 0;
    uint64_t count = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> requests_;  // by labels
  std::map<std::string, uint64_t> rows_;      // by model
  std::map<std::string, Latency> latency_;    // by labels
  std::map<std::pair<std::string, std::string>, double> gauges_;
};

}  // namespace fcp
