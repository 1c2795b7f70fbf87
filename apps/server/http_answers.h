// Where the answers of an HttpServer come in, from any thread; the descriptor wakes its epoll.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/server/http_server.h"

namespace fcp {

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
