// How often a monitor alarms for nothing, and how soon it notices a change, by simulation.
//
//   monitor_simulation [STREAMS]       10,000 where it is not said
//
// Scores are absolute values of standard normals, 500 of calibration, α = 0.1, one input column,
// and a chance of 0.01 of any false alarm over all time. First so many streams of 1,000 rows in
// which nothing changes; then 200 streams each in which the scores grow from row 500 on, or the
// input moves. Delays are rows from the change to the first alarm.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/monitoring/monitor.h"

namespace fcp {
namespace {

constexpr size_t kCalibration = 500;

struct Change {
  const char* name;
  double factor;  // of the scores
  double moved;   // the input, in deviations
};

// The first alarm of a stream that changes at a row; none within `rows` rows.
std::optional<MonitorAlarm> first_alarm(uint64_t seed, size_t rows, size_t change,
                                        const Change& to) {
  Random random(seed);
  std::vector<double> scores(kCalibration);
  for (double& score : scores) score = std::abs(random.normal());
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  const double radius = sorted[450];  // the ⌈0.9 · 501⌉-th smallest
  MonitorOptions options;
  options.seed = seed;
  Monitor monitor(options, {.groups = {}, .scores = {{scores}}}, Drift(1, {0}, {"x"}, seed));
  for (size_t t = 0; t < rows; ++t) {
    const bool after = t >= change;
    const double score = std::abs(random.normal()) * (after ? to.factor : 1);
    const auto x = static_cast<float>(random.normal() + (after ? to.moved : 0));
    monitor.take({.scores = {&score, 1},
                  .covered = score <= radius,
                  .size = 2 * radius,
                  .group = 0,
                  .shown = {},
                  .x = {&x, 1}},
                 "all");
    if (!monitor.alarms().empty()) return monitor.alarms()[0];
  }
  return std::nullopt;
}

void count_false_alarms(size_t streams) {
  std::map<std::string, size_t> kinds;
  size_t alarms = 0;
  for (size_t i = 0; i < streams; ++i) {
    const auto alarm = first_alarm(1 + i, 1000, 1000, {"", 1, 0});
    if (!alarm) continue;
    ++alarms;
    ++kinds[alarm->kind];
  }
  std::printf("nothing changes: %zu of %zu streams alarm (%.2f %%; at most 1 %% is promised)\n",
              alarms, streams, 100.0 * static_cast<double>(alarms) / static_cast<double>(streams));
  for (const auto& [kind, count] : kinds) std::printf("  %s %zu\n", kind.c_str(), count);
}

void measure_delay(const Change& change) {
  constexpr size_t kStreams = 200, kChange = 500, kPatience = 5000;
  std::vector<size_t> delays;
  std::map<std::string, size_t> kinds;
  size_t early = 0;
  for (size_t i = 0; i < kStreams; ++i) {
    const auto alarm = first_alarm(1'000'000 + i, kChange + kPatience, kChange, change);
    if (alarm && alarm->row < kChange) {
      ++early;
      continue;
    }
    delays.push_back(alarm ? alarm->row - kChange : kPatience);
    ++kinds[alarm ? alarm->kind : "none"];
  }
  std::sort(delays.begin(), delays.end());
  std::printf("| %s | %zu | %zu | ", change.name, delays[delays.size() / 2],
              delays[delays.size() * 9 / 10]);
  for (const auto& [kind, count] : kinds) std::printf("%s %zu ", kind.c_str(), count);
  std::printf("| %zu |\n", early);
}

}  // namespace
}  // namespace fcp

int main(int count, char** arguments) {
  fcp::count_false_alarms(count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 10'000);
  std::printf("| from row 500 on | median delay | 90 %% within | first alarm | early |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const fcp::Change& change : {fcp::Change{"scores × 1.25", 1.25, 0},
                                    {"scores × 1.5", 1.5, 0},
                                    {"scores × 2", 2, 0},
                                    {"scores × 4", 4, 0},
                                    {"input + 0.5 σ", 1, 0.5},
                                    {"input + 1 σ", 1, 1}}) {
    fcp::measure_delay(change);
  }
}
