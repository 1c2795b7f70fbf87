#include "apps/server/metrics.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

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

// What Linux says about this process.

namespace {

// Fields of /proc/self/stat, from the one after the name on, which is in parentheses.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const size_t end = all.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(all.substr(end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

// Seconds since 1970 at which the machine started.
double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

}  // namespace

void measure_process(Metrics& metrics) {
  const std::vector<std::string> fields = stat_fields();
  constexpr size_t kUserTime = 11, kSystemTime = 12, kThreads = 17, kStart = 19, kVirtual = 20,
                   kResident = 21;
  if (fields.size() <= kResident) return;  // not Linux
  const auto number = [&](size_t i) { return std::strtod(fields[i].c_str(), nullptr); };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  metrics.set("process_cpu_seconds_total", "", (number(kUserTime) + number(kSystemTime)) / ticks);
  metrics.set("process_start_time_seconds", "", boot_time() + number(kStart) / ticks);
  metrics.set("process_threads", "", number(kThreads));
  metrics.set("process_virtual_memory_bytes", "", number(kVirtual));
  metrics.set("process_resident_memory_bytes", "",
              number(kResident) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  std::error_code error;
  double open = -1;  // the one that counts them
  for (auto each = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && each != std::filesystem::directory_iterator(); each.increment(error)) {
    ++open;
  }
  if (!error) metrics.set("process_open_fds", "", open);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    metrics.set("process_max_fds", "", static_cast<double>(limit.rlim_cur));
  }
}

void ServerLog::write_always(Severity severity, const std::string& event,
                             const Fields& fields) const {
  constexpr const char* kNames[] = {"INFO", "WARNING", "ERROR"};
  Fields line = {{"severity", kNames[static_cast<int>(severity)]}, {"event", event}};
  line.update(fields);
  sink_(line.dump(-1, ' ', false, Fields::error_handler_t::replace));
}

void ServerLog::write(Severity severity, const std::string& event, const Fields& fields) {
  uint64_t dropped = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!rate_.allows(event, std::chrono::steady_clock::now())) {
      ++dropped_[event];
      return;
    }
    dropped = std::exchange(dropped_[event], 0);
  }
  if (dropped == 0) return write_always(severity, event, fields);
  Fields more = fields;
  more["dropped"] = dropped;
  write_always(severity, event, more);
}

}  // namespace fcp
