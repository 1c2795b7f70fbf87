// One connection of an HttpServer: bytes in, requests to the handler, answers, bytes out.
#include <array>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/server/http_answers.h"
#include "apps/server/http_server.h"

namespace fcp {

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
  epoll_set(EPOLL_CTL_MOD, one.socket, id, events);
}

}  // namespace fcp
