// The socket that a server listens on.
// Tested by tests/server/http_server_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/server/http_server.h"

namespace fcp {

// Port 0: any that is free. An Error says why that cannot be.
int listen_on(const std::string& host, uint16_t port);

uint16_t port_of(int socket);

// As many connections as this process may have open, up to `wanted`; some are for files. Raises the
// limit of the process as far as it may.
size_t possible_connections(size_t wanted);

// Where the answers of an HttpServer come in, from any thread; the descriptor wakes its epoll.

struct HttpServer::Answers {
  struct One {
    uint64_t id;      // of the connection
    uint64_t number;  // of its request
    HttpResponse response;
  };

  int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::mutex mutex{};
  std::vector<One> list{};

  ~Answers() { ::close(event); }

  void wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);
  }
};

}  // namespace fcp
