#include "apps/server/listening.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};

[[noreturn]] void fail_listen(const std::string& host, uint16_t port, const std::string& why) {
  fail("cannot listen on ", host, " port ", port, ": ", why);
}

}  // namespace

int listen_on(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const std::string service = std::to_string(port);
  if (const int error = getaddrinfo(host.c_str(), service.c_str(), &hints, &first)) {
    fail_listen(host, port, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> found(first);
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) fail_listen(host, port, std::strerror(errno));
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket, found->ai_addr, found->ai_addrlen) != 0 || listen(socket, 1024) != 0) {
    const std::string why = std::strerror(errno);
    ::close(socket);
    fail_listen(host, port, why);
  }
  return socket;
}

uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

size_t possible_connections(size_t wanted) {
  constexpr rlim_t kOthers = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY
                       ? std::max<rlim_t>(limit.rlim_cur, wanted + kOthers)
                       : std::max(limit.rlim_cur, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t possible = limit.rlim_cur > 2 * kOthers ? limit.rlim_cur - kOthers : kOthers;
  return static_cast<size_t>(std::min<rlim_t>(possible, wanted));
}

}  // namespace fcp
