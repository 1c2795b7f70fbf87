#include "apps/server/http_server.h"

#include <chrono>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A server in a thread that answers with the path; "/later" is answered by another thread.
class Running {
 public:
  explicit Running(HttpOptions options) {
    options.port = 0;
    server_ = std::make_unique<HttpServer>(options, [this](HttpRequest request, auto respond) {
      if (request.path != "/later") return respond({.body = request.path + request.body});
      late_.emplace_back([respond] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        respond({.body = "late"});
      });
    });
    thread_ = std::thread([this] { server_->run([] {}); });
  }
  ~Running() { end(); }
  void end() {
    if (!thread_.joinable()) return;
    server_->drain();
    thread_.join();
    for (std::thread& one : late_) one.join();
  }
  HttpServer& server() { return *server_; }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::vector<std::thread> late_;
};

class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void say(const std::string& text) { ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // What comes until `count` answers are whole, or the end.
  std::string hear(size_t count = 1) {
    std::string heard;
    char block[4096];
    while (true) {
      size_t whole = 0;
      for (size_t at = 0; (at = heard.find("\r\n\r\n", at)) != std::string::npos; ++whole) {
        const size_t length = heard.find("Content-Length: ", heard.rfind("HTTP/1.1", at));
        at += 4 + (length < at ? std::stoul(heard.substr(length + 16)) : 0);
        if (at > heard.size()) break;
      }
      if (whole >= count) return heard;
      const ssize_t more = ::recv(socket_, block, sizeof block, 0);
      if (more <= 0) return heard;
      heard.append(block, static_cast<size_t>(more));
    }
  }

 private:
  int socket_;
};

TEST(HttpServer, AnswersOnOneConnection) {
  Running running({});
  Client client(running.server().port());
  for (const char* path : {"/a", "/b"}) {
    client.say(concat("GET ", path, " HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(client.hear(), HasSubstr(concat("\r\n\r\n", path)));
  }
  client.say("GET /1 HTTP/1.1\r\n\r\nGET /later HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
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
    if (i % 2 == 0) slow.back()->say("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf");
  }
  Client client(running.server().port());
  client.say("GET /quick HTTP/1.1\r\n\r\n");
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
  for (Client* one : {&a, &b}) one->say("GET /later HTTP/1.1\r\n\r\n");
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
    all.back()->say(concat("GET ", path, " HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(all.back()->hear(), HasSubstr(path));
  }
  EXPECT_EQ(all[0]->hear(), "");
  EXPECT_EQ(all[1]->hear(), "");
  all[2]->say("GET /still HTTP/1.1\r\n\r\n");
  EXPECT_THAT(all[2]->hear(), HasSubstr("/still"));
}

TEST(HttpServer, LimitsTheConnectionsOfAClient) {
  Running running({.client_connections = 1});
  Client a(running.server().port());
  a.say("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(a.hear(), HasSubstr("/a"));
  {
    Client b(running.server().port());
    EXPECT_THAT(b.hear(2), StartsWith("HTTP/1.1 503 "));
  }
  a.say("GET /more HTTP/1.1\r\n\r\n");
  EXPECT_THAT(a.hear(), HasSubstr("/more"));
}

TEST(HttpServer, LimitsTheRateOfAClient) {
  Running running({.client_rate = 0.001});
  Client client(running.server().port());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "GET /a HTTP/1.1\r\n\r\n";
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
  client.say("POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, 'x'));
  EXPECT_THAT(client.hear(2), StartsWith("HTTP/1.1 503 "));
}

TEST(HttpServer, DrainsWhatIsInWork) {
  Running running({});
  Client client(running.server().port());
  client.say("GET /later HTTP/1.1\r\n\r\n");
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
