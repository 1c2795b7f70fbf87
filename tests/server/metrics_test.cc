#include "apps/server/metrics.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, AreCountedAndWritten) {
  Metrics metrics;
  metrics.count("a", "infer", 200, 3, 0.0002);
  metrics.count("a", "infer", 200, 1, 0.02);
  metrics.count("a", "infer", 400, 0, 9);
  metrics.set("fcp_connections", "", 2);
  metrics.set("fcp_coverage", label("model", "a"), 0.875);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("fcp_requests_total{model=\"a\",what=\"infer\",status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("fcp_requests_total{model=\"a\",what=\"infer\",status=\"400\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fcp_rows_total{model=\"a\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("le=\"0.0005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("le=\"0.025\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("le=\"2.5\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("fcp_request_seconds_count{model=\"a\",what=\"infer\"} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("# HELP fcp_coverage Share of truths in the regions at the watched "
                        "level.\n# TYPE fcp_coverage gauge\nfcp_coverage{model=\"a\"} 0.875"));
  EXPECT_THAT(text, HasSubstr("fcp_connections 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("fcp_alarms")));  // nothing has been said of it
  metrics.clear("fcp_coverage");
  EXPECT_THAT(metrics.text(), Not(HasSubstr("fcp_coverage")));
  EXPECT_THROW(metrics.add("fcp_unheard_of"), Error);
}

TEST(Metrics, EscapeLabels) {
  EXPECT_EQ(label("column", "a\"b\\c\nd"), "column=\"a\\\"b\\\\c\\nd\"");
}

TEST(Metrics, CountLargeNumbersExactly) {
  Metrics metrics;
  metrics.add("fcp_rows_total", "", 9'007'199'254.0);
  metrics.add("fcp_rows_total", "", 1);
  EXPECT_THAT(metrics.text(), HasSubstr("fcp_rows_total 9007199255\n"));
}

TEST(Metrics, MeasureTheProcess) {
  Metrics metrics;
  measure_process(metrics);
  const std::string text = metrics.text();
  for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes",
                           "process_open_fds", "process_start_time_seconds", "process_threads"}) {
    EXPECT_THAT(text, HasSubstr(std::string("# TYPE ") + name));
  }
  EXPECT_THAT(text, Not(HasSubstr("process_resident_memory_bytes 0\n")));
}

}  // namespace
namespace {

using Json = nlohmann::ordered_json;

TEST(ServerLog, WritesLinesOfJson) {
  std::vector<std::string> lines;
  ServerLog log([&](const std::string& line) { lines.push_back(line); });
  log.write(Severity::kWarning, "refused", {{"status", 400}, {"why", "a\xff\n"}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("{\"severity\":\"WARNING\",\"event\":\"refused\",\"status\":400,", 0),
            0u);
  EXPECT_EQ(lines[0].find('\n'), std::string::npos);
  EXPECT_TRUE(Json::parse(lines[0]).is_object());
}

// Of many events of a kind only some are written, none of another kind is lost; all are counted.
TEST(ServerLog, DropsWhatComesTooOften) {
  std::vector<Json> lines;
  ServerLog log([&](const std::string& line) { lines.push_back(Json::parse(line)); });
  uint64_t written = 0, dropped = 0, sent = 0;
  for (; sent < 10'000; ++sent) log.write(Severity::kError, "request", Json::object());
  EXPECT_LT(lines.size(), 1'000u);
  EXPECT_GE(lines.size(), 10u);
  log.write(Severity::kInfo, "loaded", Json::object());
  EXPECT_EQ(lines.back()["event"], "loaded");
  // Later there is room for another one, which says how many were dropped.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const size_t before = lines.size();
  while (lines.size() == before && std::chrono::steady_clock::now() < deadline) {
    log.write(Severity::kError, "request", Json::object());
    ++sent;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const Json& line : lines) {
    if (line["event"] != "request") continue;
    ++written;
    dropped += line.value("dropped", 0u);
  }
  EXPECT_EQ(written + dropped, sent);
  log.write_always(Severity::kInfo, "request", Json::object());
  EXPECT_EQ(lines.back()["severity"], "INFO");
}

}  // namespace
}  // namespace fcp
