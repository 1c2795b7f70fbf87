// One connection of an HttpServer: bytes in, requests to the handler, answers, bytes out.
#include <array>
#include <cerrno>
#include <ctime>
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
  if (is_waiting(one) && (events & EPOLLRDHUP) != 0) return close(id);  // the client has gone
  // By what is to be done and not by the event: TLS may have to read in order to write.
  if (unsent(one) > 0) {
    if (!write_to(one)) return end(id, one);
    if (unsent(one) == 0) look_further(id, one);
  } else if (!is_waiting(one) && !read_from(id, one)) {
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
  if (buffered_ + static_cast<size_t>(count) > options_.memory) {
    one.keep_alive = false;
    one.refused = true;
    answer_refusal(id, one, 503, "too many requests are on their way; try again later");
    return true;
  }
  const auto state = one.reader.feed({block.data(), static_cast<size_t>(count)});
  count_bytes(one);
  if (!began) set_deadline(one);
  go_on(id, one, state);
  return true;
}

void HttpServer::count_bytes(Connection& one) {
  buffered_ -= one.counted;
  one.counted = one.reader.buffered();
  buffered_ += one.counted;
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
    return answer_refusal(id, one, one.reader.status(), one.reader.complaint());
  }
  begin_work(id, one, one.reader.take());
}

void HttpServer::begin_work(uint64_t id, Connection& one, HttpRequest request) {
  one.keep_alive = request.keep_alive && !draining_;
  one.head_only = request.method == "HEAD";
  request.client = one.address;
  one.asked = request.deadline =
      std::make_shared<Deadline>(std::chrono::duration<double>(options_.answer_seconds));
  one.in_work = request.body.size();
  buffered_ += one.in_work;
  count_bytes(one);
  ++in_work_;
  const Respond respond = [answers = answers_, id, number = ++one.number](HttpResponse response) {
    {
      const std::lock_guard lock(answers->mutex);
      answers->list.push_back({id, number, std::move(response)});
    }
    answers->wake();
  };
  if (rate_.allows(one.client, Clock::now())) {
    try {
      return handler_(std::move(request), respond);
    } catch (const std::bad_alloc&) {
      --in_work_;
      throw;
    }
  }
  ++limited_;
  HttpResponse response = error_response(429, "too many requests; try again in a second");
  response.headers["Retry-After"] = "1";
  respond(std::move(response));
}

void HttpServer::take_answers() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(answers_->event, &count, sizeof count);
  std::vector<Answers::One> list;
  {
    const std::lock_guard lock(answers_->mutex);
    list.swap(answers_->list);
  }
  for (Answers::One& one : list) {
    --in_work_;
    const auto found = all_.find(one.id);
    if (found == all_.end() || found->second.number != one.number) continue;  // nobody waits
    if (!is_waiting(found->second)) continue;
    do_for(one.id, [&] { answer(one.id, std::move(one.response)); });
  }
}

void HttpServer::answer(uint64_t id, HttpResponse response) {
  Connection& one = all_.at(id);
  one.asked.reset();
  buffered_ -= std::exchange(one.in_work, 0);
  if (draining_) one.keep_alive = false;
  one.out = http_head(response, one.keep_alive, std::time(nullptr));
  if (!std::exchange(one.head_only, false)) one.body = std::move(response.body);
  constexpr size_t kSmall = 4096;  // goes out with the head
  if (one.body.size() <= kSmall) one.out += std::exchange(one.body, {});
  one.sent = 0;
  set_deadline(one);
  if (!write_to(one)) return end(id, one);
  if (unsent(one) > 0) return watch(id, one);
  look_further(id, one);
  const auto still = all_.find(id);
  if (still != all_.end()) watch(id, still->second);
}

// The next request may have come already.
void HttpServer::look_further(uint64_t id, Connection& one) {
  const auto state = one.reader.take_next();
  count_bytes(one);
  if (state != HttpReader::State::kMore) go_on(id, one, state);
}

// False where the connection is at its end.
bool HttpServer::write_to(Connection& one) {
  const bool had = unsent(one) > 0;
  while (unsent(one) > 0) {
    const bool in_head = one.sent < one.out.size();
    const std::string_view rest =
        in_head ? std::string_view(one.out).substr(one.sent)
                : std::string_view(one.body).substr(one.sent - one.out.size());
    const ssize_t count = transmit(one, rest);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    one.sent += static_cast<size_t>(count);
  }
  std::string().swap(one.out);
  std::string().swap(one.body);
  one.sent = 0;
  if (had) set_deadline(one);
  return !had || one.keep_alive;
}

// Who waits for an answer is watched for going away.
void HttpServer::watch(uint64_t id, Connection& one) {
  uint32_t events = static_cast<uint32_t>(is_waiting(one) ? EPOLLRDHUP : EPOLLIN);
  if (unsent(one) > 0) events = EPOLLOUT;
  // TLS that is in the middle of something knows better: a handshake writes, too.
  if (!is_waiting(one) && one.tls && one.tls->blocked()) {
    events = one.tls->wants_write() ? EPOLLOUT : EPOLLIN;
  }
  epoll_set(EPOLL_CTL_MOD, one.socket, id, events);
}

}  // namespace fcp
