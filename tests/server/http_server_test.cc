#include "apps/server/http_server.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/server/http_client.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Client = testing::ByteClient;

// "/later" is answered by another thread, when it is time.
class Running {
 public:
  explicit Running(const HttpOptions& options, std::chrono::milliseconds late = kSoon)
      : running_(options, [this, late](HttpRequest request, auto respond) {
          if (request.path != "/later") return testing::echo(std::move(request), respond);
          {
            const std::lock_guard lock(mutex_);
            deadline_ = request.deadline;
          }
          known_.notify_all();
          late_.emplace_back([this, respond, late] {
            for (const auto start = Clock::now(); Clock::now() < start + late && !ending_;) {
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
            respond({.body = "late"});
          });
        }) {}
  ~Running() { end(); }
  void end() {
    running_.end();
    ending_ = true;
    for (std::thread& one : late_) one.join();
    late_.clear();
  }
  HttpServer& server() { return running_.server(); }
  // Of the last that is answered later; waits for the first.
  const Deadline& deadline() {
    std::unique_lock lock(mutex_);
    known_.wait(lock, [this] { return deadline_ != nullptr; });
    return *deadline_;
  }

  static constexpr std::chrono::milliseconds kSoon{200};

 private:
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;
  std::condition_variable known_;
  std::shared_ptr<Deadline> deadline_;
  std::vector<std::thread> late_;
  testing::RunningServer running_;
};

TEST(HttpServer, AnswersOnOneConnection) {
  Running running({});
  Client client(running.server().port());
  for (const char* path : {"/a", "/b"}) {
    client.say(concat("GET ", path, " HTTP/1.1\r\nHost: h\r\n\r\n"));
    EXPECT_THAT(client.hear(), HasSubstr(concat("\r\n\r\n", path)));
  }
  client.say(
      "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /3 "
      "HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string heard = client.hear(3);
  EXPECT_LT(heard.find("/1"), heard.find("late"));
  EXPECT_LT(heard.find("late"), heard.find("/3"));
}

TEST(HttpServer, SaysWhatIsWrongAndCloses) {
  Running running({});
  Client client(running.server().port());
  client.say("nonsense\r\n\r\n");
  EXPECT_THAT(client.hear(2), StartsWith("HTTP/1.1 400 "));
}

TEST(HttpServer, ServesOthersWhileSomeAreSlow) {
  Running running({});
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(std::make_unique<Client>(running.server().port()));
    if (i % 2 == 0)
      slow.back()->say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
  }
  Client client(running.server().port());
  client.say("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.hear(), HasSubstr("/quick"));
}

TEST(HttpServer, ClosesThoseWhoAreLate) {
  // A server each: half a request that is late to begin must not be closed as an idle connection.
  Running hurried({.request_seconds = 0.2}), brief({.idle_seconds = 0.2});
  Client half(hurried.server().port()), idle(brief.server().port());
  half.say("GET / HT");
  EXPECT_THAT(half.hear(2), StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(idle.hear(), "");
}

TEST(HttpServer, RefusesTooManyConnections) {
  Running running({.connections = 2});
  Client a(running.server().port()), b(running.server().port());
  for (Client* one : {&a, &b}) one->say("GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
  while (running.server().in_work() < 2) std::this_thread::yield();
  Client c(running.server().port());
  EXPECT_THAT(c.hear(2), StartsWith("HTTP/1.1 503 "));
}

// Whoever has been idle for the longest makes room: all connections being taken does not keep
// others out.
TEST(HttpServer, MakesRoomForOthers) {
  Running running({.connections = 2});
  std::vector<std::unique_ptr<Client>> all;
  for (const char* path : {"/a", "/b", "/c", "/d"}) {
    all.push_back(std::make_unique<Client>(running.server().port()));
    all.back()->say(concat("GET ", path, " HTTP/1.1\r\nHost: h\r\n\r\n"));
    EXPECT_THAT(all.back()->hear(), HasSubstr(path));
  }
  EXPECT_EQ(all[0]->hear(), "");
  EXPECT_EQ(all[1]->hear(), "");
  all[2]->say("GET /still HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(all[2]->hear(), HasSubstr("/still"));
}

TEST(HttpServer, LimitsTheConnectionsOfAClient) {
  Running running({.client_connections = 1});
  Client a(running.server().port());
  a.say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(a.hear(), HasSubstr("/a"));
  {
    Client b(running.server().port());
    EXPECT_THAT(b.hear(2), StartsWith("HTTP/1.1 503 "));
  }
  a.say("GET /more HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(a.hear(), HasSubstr("/more"));
}

TEST(HttpServer, LimitsTheRateOfAClient) {
  Running running({.client_rate = 0.001});
  Client client(running.server().port());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
  client.say(many);
  const std::string heard = client.hear(1000);
  EXPECT_THAT(heard, StartsWith("HTTP/1.1 200 "));
  size_t limited = 0;
  for (size_t at = 0; (at = heard.find("HTTP/1.1 429 ", at)) != std::string::npos; ++at) ++limited;
  EXPECT_EQ(limited, 999u);
  EXPECT_THAT(heard, HasSubstr("Retry-After: 1"));
  EXPECT_EQ(running.server().limited(), 999u);
}

TEST(HttpServer, RefusesMoreBytesThanItHasRoomFor) {
  Running running({.memory = 1000});
  Client client(running.server().port());
  client.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, 'x'));
  EXPECT_THAT(client.hear(2), StartsWith("HTTP/1.1 503 "));
}

// The length is that of the body which GET would bring; none comes, and the connection goes on.
TEST(HttpServer, AnswersHeadWithoutABody) {
  Running running({});
  Client client(running.server().port());
  client.say(
      "HEAD /abc HTTP/1.1\r\nHost: h\r\n\r\nGET /d HTTP/1.1\r\nHost: h\r\nConnection: "
      "close\r\n\r\n");
  const std::string heard = client.hear_all();
  EXPECT_THAT(heard, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(heard, ::testing::Not(HasSubstr("/abc")));
  EXPECT_THAT(heard, ::testing::EndsWith("\r\n\r\n/d"));
  EXPECT_THAT(heard, HasSubstr(" GMT\r\n"));  // a Date
}

TEST(HttpServer, SendsLargeBodies) {
  Running running({});
  const std::string body(3'000'000, 'x');
  Client client(running.server().port());
  for (int i = 0; i < 2; ++i) {
    std::thread talk([&] {
      client.say(
          concat("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
    });
    EXPECT_THAT(client.hear(), ::testing::EndsWith("\r\n\r\n/" + body));
    talk.join();
  }
}

// The client hears of it in time, what comes too late is not sent, and the connection goes on.
TEST(HttpServer, AnswersWhatTakesTooLong) {
  Running running({.answer_seconds = 0.2}, std::chrono::seconds(600));
  Client client(running.server().port());
  client.say("GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string heard = client.hear();
  EXPECT_THAT(heard, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(heard, HasSubstr("took longer"));
  EXPECT_TRUE(running.deadline().is_over());
  client.say("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.hear(), HasSubstr("/next"));
  running.end();  // does not wait for the late one
}

TEST(HttpServer, CancelsTheWorkForAClientThatHasGone) {
  Running running({}, std::chrono::seconds(600));
  {
    Client client(running.server().port());
    client.say("GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    while (running.server().in_work() == 0) std::this_thread::yield();
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!running.deadline().is_over() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(running.deadline().is_over());
  EXPECT_FALSE(running.deadline().has_passed());
}

// What was answered at once is sent although the client has closed its side meanwhile.
TEST(HttpServer, AnswersThoseWhoSayNoMore) {
  Running running({});
  Client client(running.server().port());
  client.say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  client.say_no_more();
  EXPECT_THAT(client.hear(), HasSubstr("/a"));
}

TEST(HttpServer, DrainsWhatIsInWork) {
  Running running({});
  Client client(running.server().port());
  client.say("GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
  while (running.server().in_work() == 0) std::this_thread::yield();
  running.end();
  EXPECT_THAT(client.hear(2), HasSubstr("late"));
}

TEST(HttpServer, SaysWhyItCannotListen) {
  Running running({});
  EXPECT_THROW(HttpServer({.port = running.server().port()}, {}), Error);
  EXPECT_THROW(HttpServer({.host = "no.such.host.invalid"}, {}), Error);
}

}  // namespace
}  // namespace fcp
