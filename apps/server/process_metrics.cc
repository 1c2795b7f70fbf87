// What Linux says about this process.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "apps/server/metrics.h"

namespace fcp {
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

}  // namespace fcp
