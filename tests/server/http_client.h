// A server in a thread and a client of bytes, for the tests of the server's HTTP.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/server/http_server.h"

namespace fcp::testing {

// Answers with the path and the body.
inline void echo(HttpRequest request, const HttpServer::Respond& respond) {
  respond({.body = request.path + request.body});
}

class RunningServer {
 public:
  explicit RunningServer(HttpOptions options, HttpServer::Handler handler = echo) {
    options.port = 0;
    server_ = std::make_unique<HttpServer>(options, std::move(handler));
    thread_ = std::thread([this] { server_->run([] {}); });
  }
  ~RunningServer() { end(); }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  void end() {
    if (!thread_.joinable()) return;
    server_->drain();
    thread_.join();
  }
  HttpServer& server() { return *server_; }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

class ByteClient {
 public:
  explicit ByteClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~ByteClient() { ::close(socket_); }
  ByteClient(const ByteClient&) = delete;
  ByteClient& operator=(const ByteClient&) = delete;

  void say(const std::string& text) const {
    ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // What comes until `count` answers are whole, or the end.
  std::string hear(size_t count = 1) const {
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
  void say_no_more() const { ::shutdown(socket_, SHUT_WR); }
  std::string hear_all() const { return hear(std::string::npos); }

 private:
  int socket_;
};

}  // namespace fcp::testing
