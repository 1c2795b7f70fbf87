#include "fcp/serving/http_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr uint64_t kListener = 0;
constexpr uint64_t kAnswers = 1;

struct FreeAddresses {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};

[[noreturn]] void fail_listen(const HttpOptions& options, const std::string& why) {
  fail("cannot listen on ", options.host, " port ", options.port, ": ", why);
}

int listen_on(const HttpOptions& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const std::string port = std::to_string(options.port);
  if (const int error = getaddrinfo(options.host.c_str(), port.c_str(), &hints, &first)) {
    fail_listen(options, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> found(first);
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) fail_listen(options, std::strerror(errno));
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket, found->ai_addr, found->ai_addrlen) != 0 || listen(socket, 1024) != 0) {
    const std::string why = std::strerror(errno);
    ::close(socket);
    fail_listen(options, why);
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

// As many connections as this process may have open, up to `wanted`; some are for files.
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

void epoll_set(int epoll, int what, int socket, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll, what, socket, &event);
}

}  // namespace

struct HttpServer::Answers {
  int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::mutex mutex{};
  std::vector<std::pair<uint64_t, HttpResponse>> list{};

  ~Answers() { ::close(event); }

  void wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);
  }
};

HttpServer::HttpServer(const HttpOptions& options, Handler handler)
    : options_(options),
      handler_(std::move(handler)),
      tls_(options.certificate.empty() ? nullptr : open_tls(options.certificate, options.key)),
      rate_(options.client_rate),
      listener_(listen_on(options)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      port_(port_of(listener_)),
      answers_(std::make_shared<Answers>()) {
  options_.connections = possible_connections(options.connections);
  epoll_set(epoll_, EPOLL_CTL_ADD, listener_, kListener, EPOLLIN);
  epoll_set(epoll_, EPOLL_CTL_ADD, answers_->event, kAnswers, EPOLLIN);
}

HttpServer::~HttpServer() {
  for (auto& [id, one] : all_) {
    one.tls.reset();
    ::close(one.socket);
  }
  if (listener_ >= 0) ::close(listener_);
  ::close(epoll_);
}

void HttpServer::drain() {
  draining_ = true;
  answers_->wake();
}

void HttpServer::run(const std::function<void()>& tick) {
  std::array<epoll_event, 256> events;
  Clock::time_point next_tick = Clock::now();
  while (true) {
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 100);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kListener) {
        accept_all();
      } else if (id != kAnswers) {
        serve(id, events[static_cast<size_t>(i)].events);
      }
    }
    take_answers();
    if (Clock::now() >= next_tick) {
      next_tick = Clock::now() + std::chrono::milliseconds(100);
      close_late();
      tick();
    }
    if (!draining_) continue;
    if (listener_ >= 0) ::close(std::exchange(listener_, -1));
    bool busy = in_work_ > 0;
    for (const auto& [id, one] : all_) busy = busy || !one.out.empty();
    if (!busy) return;
  }
}

// Best effort: who has no connection must not make others wait.
void HttpServer::refuse(int socket, const std::string& why) const {
  if (tls_ == nullptr) {
    const std::string text = http_text(error_response(503, why), false);
    [[maybe_unused]] const ssize_t sent =
        send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ::close(socket);
}

// At the limit of connections the one that has been idle for the longest makes room.
bool HttpServer::has_room(const std::string& client) {
  const auto of_client = by_client_.find(client);
  if (options_.client_connections > 0 && of_client != by_client_.end() &&
      of_client->second >= options_.client_connections) {
    return false;
  }
  if (all_.size() < options_.connections) return true;
  auto oldest = all_.end();
  for (auto each = all_.begin(); each != all_.end(); ++each) {
    const Connection& one = each->second;
    const bool idle = !one.waiting && one.out.empty() && !one.reader.in_request();
    if (!idle || (oldest != all_.end() && oldest->second.deadline <= one.deadline)) continue;
    oldest = each;
  }
  if (oldest == all_.end()) return false;
  close(oldest->first);
  return true;
}

void HttpServer::accept_all() {
  while (true) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int socket = accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    std::string client = client_of(address);
    if (!has_room(client)) {
      refuse(socket, "too many connections");
      continue;
    }
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const uint64_t id = next_++;
    Connection& one =
        all_.emplace(id, Connection{.socket = socket, .reader = HttpReader(options_.limits)})
            .first->second;
    ++by_client_[client];
    one.client = std::move(client);
    if (tls_ != nullptr) one.tls = tls_->accept(socket);
    open_ = all_.size();
    set_deadline(one);
    epoll_set(epoll_, EPOLL_CTL_ADD, socket, id, EPOLLIN);
  }
}

void HttpServer::set_deadline(Connection& one) {
  const bool busy = one.reader.in_request() || !one.out.empty();
  const double seconds = busy ? options_.request_seconds : options_.idle_seconds;
  one.deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

void HttpServer::serve(uint64_t id, uint32_t events) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  Connection& one = found->second;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return close(id);
  // By what is to be done and not by the event: TLS may have to read in order to write.
  if (!one.out.empty()) {
    if (!write_to(one)) return end(id, one);
    if (one.out.empty()) look_further(id, one);
  } else if (!one.waiting && !read_from(id, one)) {
    return close(id);
  }
  const auto still = all_.find(id);
  if (still != all_.end()) watch(id, still->second);
}

ssize_t HttpServer::receive(Connection& one, char* bytes, size_t size) {
  return one.tls ? one.tls->read(bytes, size) : recv(one.socket, bytes, size, 0);
}

ssize_t HttpServer::transmit(Connection& one, std::string_view bytes) {
  return one.tls ? one.tls->write(bytes.data(), bytes.size())
                 : send(one.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// One block at a time, so that one client does not keep the others waiting; it is larger than a
// record of TLS, so that nothing is left where epoll does not see it. False where the connection is
// at its end.
bool HttpServer::read_from(uint64_t id, Connection& one) {
  std::array<char, 65536> block;
  const ssize_t count = receive(one, block.data(), block.size());
  if (count == 0) return false;
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (one.ending) return true;
  const bool began = one.reader.in_request();
  const size_t before = one.reader.buffered();
  if (buffered_ + static_cast<size_t>(count) > options_.memory) {
    one.keep_alive = false;
    one.refused = true;
    answer(id, error_response(503, "too many requests are on their way; try again later"));
    return true;
  }
  const auto state = one.reader.feed({block.data(), static_cast<size_t>(count)});
  buffered_ += one.reader.buffered() - before;
  if (!began) set_deadline(one);
  go_on(id, one, state);
  return true;
}

void HttpServer::go_on(uint64_t id, Connection& one, HttpReader::State state) {
  if (state == HttpReader::State::kMore) {
    if (one.reader.wants_continue()) {
      [[maybe_unused]] const ssize_t sent = transmit(one, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    return;
  }
  if (state == HttpReader::State::kWrong) {
    one.keep_alive = false;
    one.refused = true;
    return answer(id, error_response(one.reader.status(), one.reader.complaint()));
  }
  HttpRequest request = one.reader.take();
  one.keep_alive = request.keep_alive && !draining_;
  one.waiting = true;
  ++in_work_;
  const Respond respond = [answers = answers_, id](HttpResponse response) {
    {
      const std::lock_guard lock(answers->mutex);
      answers->list.emplace_back(id, std::move(response));
    }
    answers->wake();
  };
  if (rate_.allows(one.client, Clock::now())) return handler_(std::move(request), respond);
  ++limited_;
  HttpResponse response = error_response(429, "too many requests; try again in a second");
  response.headers["Retry-After"] = "1";
  respond(std::move(response));
}

void HttpServer::take_answers() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(answers_->event, &count, sizeof count);
  std::vector<std::pair<uint64_t, HttpResponse>> list;
  {
    const std::lock_guard lock(answers_->mutex);
    list.swap(answers_->list);
  }
  for (const auto& [id, response] : list) {
    --in_work_;
    answer(id, response);
  }
}

void HttpServer::answer(uint64_t id, const HttpResponse& response) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;  // the client has gone
  Connection& one = found->second;
  one.waiting = false;
  if (draining_) one.keep_alive = false;
  one.out = http_text(response, one.keep_alive);
  one.sent = 0;
  set_deadline(one);
  if (!write_to(one)) return end(id, one);
  if (!one.out.empty()) return watch(id, one);
  look_further(id, one);
  const auto still = all_.find(id);
  if (still != all_.end()) watch(id, still->second);
}

// The next request may have come already.
void HttpServer::look_further(uint64_t id, Connection& one) {
  const size_t before = one.reader.buffered();
  const auto state = one.reader.take_next();
  buffered_ += one.reader.buffered() - before;
  if (state != HttpReader::State::kMore) go_on(id, one, state);
}

// False where the connection is at its end.
bool HttpServer::write_to(Connection& one) {
  while (one.sent < one.out.size()) {
    const ssize_t count = transmit(one, std::string_view(one.out).substr(one.sent));
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    one.sent += static_cast<size_t>(count);
  }
  const bool had = !one.out.empty();
  one.out.clear();
  one.sent = 0;
  if (had) set_deadline(one);
  return !had || one.keep_alive;
}

void HttpServer::watch(uint64_t id, Connection& one) {
  uint32_t events = one.waiting ? 0u : static_cast<uint32_t>(EPOLLIN);
  if (!one.out.empty()) events = EPOLLOUT;
  // TLS that is in the middle of something knows better: a handshake writes, too.
  if (events != 0 && one.tls && one.tls->blocked()) {
    events = one.tls->wants_write() ? EPOLLOUT : EPOLLIN;
  }
  epoll_set(epoll_, EPOLL_CTL_MOD, one.socket, id, events);
}

void HttpServer::close(uint64_t id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  Connection& one = found->second;
  buffered_ -= one.reader.buffered();
  one.tls.reset();
  ::close(one.socket);
  const auto of_client = by_client_.find(one.client);
  if (--of_client->second == 0) by_client_.erase(of_client);
  all_.erase(found);
  open_ = all_.size();
}

// Closing at once would reset a connection on which the rest of a refused request is still coming,
// and the client would never read why: it is heard out for a moment.
void HttpServer::end(uint64_t id, Connection& one) {
  if (!one.refused || one.ending || !one.out.empty()) return close(id);
  ::shutdown(one.socket, SHUT_WR);
  one.ending = true;
  one.deadline = Clock::now() + std::chrono::seconds(2);
  watch(id, one);
}

void HttpServer::close_late() {
  std::vector<uint64_t> late;
  const auto now = Clock::now();
  for (const auto& [id, one] : all_) {
    if (!one.waiting && now > one.deadline) late.push_back(id);
  }
  for (const uint64_t id : late) {
    Connection& one = all_.at(id);
    const bool unfinished = one.reader.in_request() && one.out.empty();
    if (unfinished) {
      one.keep_alive = false;
      const std::string text = http_text(error_response(408, "the request did not come"), false);
      [[maybe_unused]] const ssize_t sent = transmit(one, text);
    }
    close(id);
  }
}

}  // namespace fcp
