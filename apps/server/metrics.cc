#include "apps/server/metrics.h"

#include <cmath>
#include <span>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr double kSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5};
constexpr double kRows[] = {1, 4, 16, 64, 256, 1024, 4096};

struct Family {
  const char* name;
  const char* type;
  const char* help;
  std::span<const double> bounds = {};  // of a histogram
};

// In the order in which they are written.
constexpr Family kFamilies[] = {
    {"fcp_requests_total", "counter", "Requests answered."},
    {"fcp_requests_limited_total", "counter", "Requests of clients that asked too often, 429."},
    {"fcp_http_refused_total", "counter", "Messages refused, and answers that came too late."},
    {"fcp_request_seconds", "histogram", "Seconds from a whole request to its answer.", kSeconds},
    {"fcp_rows_total", "counter", "Rows predicted."},
    {"fcp_cells_missing_total", "counter", "Cells that were empty or null, by column."},
    {"fcp_categories_unknown_total", "counter", "Cells of categories that training has not seen."},
    {"fcp_batch_rows", "histogram", "Rows that were run together.", kRows},
    {"fcp_queue_rows", "gauge", "Rows that wait to be run."},
    {"fcp_answers_unbounded_total", "counter", "Rows answered with an infinite interval."},
    {"fcp_answers_empty_total", "counter", "Rows answered with an empty set or interval."},
    {"fcp_truths_total", "counter", "Truths accepted, by whether the answer covered them."},
    {"fcp_truths_refused_total", "counter", "Truths not accepted: unknown, duplicate or wrong."},
    {"fcp_not_remembered_total", "counter",
     "Rows answered without a trace: their truths are lost."},
    {"fcp_state_errors_total", "counter", "Transactions of the state that failed."},
    {"fcp_state_up", "gauge", "Whether the last transaction of the state was kept."},
    {"fcp_waiting_predictions", "gauge", "Predictions in the state that wait for their truth."},
    {"fcp_truths_stored", "gauge", "Truths in the state."},
    {"fcp_reload_failures_total", "counter",
     "Files that were not taken: model, certificate, token."},
    {"fcp_connections", "gauge", "Open connections."},
    {"fcp_requests_in_work", "gauge", "Requests that have come and are not answered."},
    {"fcp_ready", "gauge", "Whether the server says that it is ready."},
    {"fcp_level", "gauge", "The level that follows the truths."},
    {"fcp_coverage", "gauge", "Share of truths in the regions at the watched level."},
    {"fcp_coverage_low", "gauge", "Lower end of the confidence sequence of the coverage."},
    {"fcp_coverage_high", "gauge", "Upper end of the confidence sequence of the coverage."},
    {"fcp_adapted_coverage", "gauge", "Share of truths in the regions as they were answered."},
    {"fcp_mean_size", "gauge", "Mean length of finite intervals, or size of sets."},
    {"fcp_adapted_mean_size", "gauge", "Mean size of the regions as they were answered."},
    {"fcp_alarms", "gauge", "Alarms of the monitor."},
    {"fcp_exchangeability_log10", "gauge", "Log10 of the capital against exchangeability."},
    {"fcp_miscoverage_log10", "gauge", "Log10 of the capital against the coverage."},
    {"fcp_drift_log10", "gauge", "Log10 of the capital against steady inputs."},
    {"fcp_model_info", "gauge", "The models that are served, and their files."},
    {"fcp_build_info", "gauge", "The program that serves."},
    {"process_cpu_seconds_total", "counter", "Processor time of the process."},
    {"process_resident_memory_bytes", "gauge", "Memory of the process that is resident."},
    {"process_virtual_memory_bytes", "gauge", "Memory of the process that is mapped."},
    {"process_open_fds", "gauge", "Open file descriptors."},
    {"process_max_fds", "gauge", "File descriptors that may be open."},
    {"process_threads", "gauge", "Threads of the process."},
    {"process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970."},
};

const Family& family_of(const std::string& name) {
  for (const Family& family : kFamilies) {
    if (name == family.name) return family;
  }
  fail("there is no metric ", name);
}

std::string number_text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return std::to_string(static_cast<int64_t>(value));
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string line(const std::string& name, const std::string& labels, const std::string& value) {
  return concat(name, labels.empty() ? "" : concat("{", labels, "}"), " ", value, "\n");
}

}  // namespace

std::string label(const std::string& name, const std::string& value) {
  std::string text = name + "=\"";
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

void Metrics::count(const std::string& model, const std::string& what, int status, size_t rows,
                    double seconds) {
  const std::string who = label("model", model) + "," + label("what", what);
  add("fcp_requests_total", who + "," + label("status", std::to_string(status)));
  if (rows > 0) add("fcp_rows_total", label("model", model), static_cast<double>(rows));
  observe("fcp_request_seconds", who, seconds);
}

void Metrics::add(const std::string& name, const std::string& labels, double by) {
  family_of(name);
  const std::lock_guard lock(mutex_);
  values_[name][labels] += by;
}

void Metrics::set(const std::string& name, const std::string& labels, double value) {
  family_of(name);
  const std::lock_guard lock(mutex_);
  values_[name][labels] = value;
}

void Metrics::observe(const std::string& name, const std::string& labels, double value) {
  const std::span<const double> bounds = family_of(name).bounds;
  const std::lock_guard lock(mutex_);
  Histogram& histogram = histograms_[name][labels];
  histogram.buckets.resize(bounds.size() + 1);
  size_t bucket = 0;
  while (bucket < bounds.size() && value > bounds[bucket]) ++bucket;
  ++histogram.buckets[bucket];
  histogram.sum += value;
  ++histogram.count;
}

void Metrics::clear(const std::string& name) {
  const std::lock_guard lock(mutex_);
  values_.erase(name);
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Family& family : kFamilies) {
    const std::string name = family.name;
    const auto values = values_.find(name);
    const auto histograms = histograms_.find(name);
    if (values == values_.end() && histograms == histograms_.end()) continue;
    text += concat("# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", family.type, "\n");
    if (values != values_.end()) {
      for (const auto& [labels, value] : values->second) {
        text += line(name, labels, number_text_of(value));
      }
      continue;
    }
    for (const auto& [labels, histogram] : histograms->second) {
      uint64_t below = 0;
      for (size_t i = 0; i < histogram.buckets.size(); ++i) {
        below += histogram.buckets[i];
        const std::string bound =
            i < family.bounds.size() ? number_text_of(family.bounds[i]) : "+Inf";
        const std::string all = labels + (labels.empty() ? "" : ",") + label("le", bound);
        text += line(name + "_bucket", all, std::to_string(below));
      }
      text += line(name + "_sum", labels, number_text_of(histogram.sum));
      text += line(name + "_count", labels, std::to_string(histogram.count));
    }
  }
  return text;
}

}  // namespace fcp
