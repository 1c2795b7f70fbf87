#include "apps/server/server_log.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fcp {
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
