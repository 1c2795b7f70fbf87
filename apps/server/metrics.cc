#include "apps/server/metrics.h"

#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
namespace {

std::string number_text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return concat(value);
}

std::string line(const std::string& name, const std::string& labels, const std::string& value) {
  return concat(name, labels.empty() ? "" : concat("{", labels, "}"), " ", value, "\n");
}

std::string head(const char* name, const char* type, const char* help) {
  return concat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

void Metrics::count(const std::string& model, const std::string& what, int status, size_t rows,
                    double seconds) {
  // Names come from the server's own lists, never from a request, so that their number is bounded.
  const std::string who = concat("model=\"", model, "\",what=\"", what, "\"");
  const std::lock_guard lock(mutex_);
  ++requests_[concat(who, ",status=\"", status, "\"")];
  if (rows > 0) rows_[concat("model=\"", model, "\"")] += rows;
  Latency& latency = latency_[who];
  size_t bucket = 0;
  while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
  ++latency.buckets[bucket];
  latency.sum += seconds;
  ++latency.count;
}

void Metrics::set(const std::string& name, const std::string& labels, double value) {
  const std::lock_guard lock(mutex_);
  gauges_[{name, labels}] = value;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = head("fcp_requests_total", "counter", "Requests answered.");
  for (const auto& [labels, count] : requests_) {
    text += line("fcp_requests_total", labels, std::to_string(count));
  }
  text += head("fcp_rows_total", "counter", "Rows predicted.");
  for (const auto& [labels, count] : rows_) {
    text += line("fcp_rows_total", labels, std::to_string(count));
  }
  text += head("fcp_request_seconds", "histogram", "Seconds from a whole request to its answer.");
  for (const auto& [labels, latency] : latency_) {
    uint64_t below = 0;
    for (size_t i = 0; i < latency.buckets.size(); ++i) {
      below += latency.buckets[i];
      const std::string bound = i < kBounds.size() ? number_text_of(kBounds[i]) : "+Inf";
      text += line("fcp_request_seconds_bucket", concat(labels, ",le=\"", bound, "\""),
                   std::to_string(below));
    }
    text += line("fcp_request_seconds_sum", labels, number_text_of(latency.sum));
    text += line("fcp_request_seconds_count", labels, std::to_string(latency.count));
  }
  std::string last;
  for (const auto& [key, value] : gauges_) {
    if (key.first != last) text += concat("# TYPE ", key.first, " gauge\n");
    last = key.first;
    text += line(key.first, key.second, number_text_of(value));
  }
  return text;
}

}  // namespace fcp
