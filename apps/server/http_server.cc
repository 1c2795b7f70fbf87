#include "apps/server/http_server.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/server/http_traffic.h"

namespace fcp {
namespace {

constexpr uint64_t kListener = 0;
constexpr uint64_t kAnswers = 1;

}  // namespace

HttpServer::HttpServer(const HttpOptions& options, Handler handler)
    : options_(options),
      handler_(std::move(handler)),
      tls_(options.certificate.empty() ? nullptr : open_tls(options.certificate, options.key)),
      rate_(options.client_rate),
      listener_(listen_on(options.host, options.port)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      port_(port_of(listener_)),
      answers_(std::make_shared<Answers>()) {
  options_.connections = possible_connections(options.connections);
  epoll_set(EPOLL_CTL_ADD, listener_, kListener, EPOLLIN);
  epoll_set(EPOLL_CTL_ADD, answers_->event, kAnswers, EPOLLIN);
}

HttpServer::~HttpServer() {
  for (auto& [id, one] : all_) {
    one.tls.reset();
    ::close(one.socket);
  }
  if (listener_ >= 0) ::close(listener_);
  ::close(epoll_);
}

void HttpServer::epoll_set(int what, int socket, uint64_t id, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_, what, socket, &event);
}

void HttpServer::read_certificate() {
  if (tls_ != nullptr) tls_ = open_tls(options_.certificate, options_.key);
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
    take_answers();  // before those who asked are seen to have gone
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kListener) {
        accept_all();
      } else if (id != kAnswers) {
        do_for(id, [&] { serve(id, events[static_cast<size_t>(i)].events); });
      }
    }
    if (Clock::now() >= next_tick) {
      next_tick = Clock::now() + std::chrono::milliseconds(100);
      do_for(kListener, [&] {  // what is not done now is done at the next
        answer_late();
        close_late();
        tick();
      });
    }
    if (!draining_) continue;
    if (listener_ >= 0) {
      accept_all();  // clients that think they are connected
      ::close(std::exchange(listener_, -1));
    } else if (count <= 0 && !is_busy()) {
      return;
    }
  }
}

void HttpServer::give_up(uint64_t id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  Connection& one = found->second;
  try {
    one.reader = HttpReader(options_.limits);  // its memory is needed for the answer
    count_bytes(one);
    one.keep_alive = false;
    one.refused = true;
    answer_refusal(id, one, 503, "out of memory");
  } catch (const std::bad_alloc&) {
    close(id);
  }
}

// Whether a request is coming, waited for, or its answer on the way.
bool HttpServer::is_busy() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& each) {
    const Connection& one = each.second;
    return is_waiting(one) || unsent(one) > 0 || (one.reader.in_request() && !one.ending);
  });
}

// Best effort: who has no connection must not make others wait.
void HttpServer::refuse(int socket, const std::string& client, const std::string& why) const {
  if (options_.refused) options_.refused(503, why, client);
  if (tls_ == nullptr) {
    const HttpResponse response = error_response(503, why);
    const std::string text = http_head(response, false, std::time(nullptr)) + response.body;
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
    const bool idle = !is_waiting(one) && unsent(one) == 0 && !one.reader.in_request();
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
      refuse(socket, address_text(address), "too many connections");
      continue;
    }
    const uint64_t id = next_++;
    try {
      add(id, socket, std::move(client), address_text(address));
    } catch (const std::bad_alloc&) {
      if (all_.contains(id)) {
        close(id);
      } else {
        ::close(socket);
      }
    }
  }
}

void HttpServer::add(uint64_t id, int socket, std::string client, std::string address) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  Connection& one =
      all_.emplace(id, Connection{.socket = socket, .reader = HttpReader(options_.limits)})
          .first->second;
  ++by_client_[client];
  one.client = std::move(client);
  one.address = std::move(address);
  if (tls_ != nullptr) one.tls = tls_->accept(socket);
  open_ = all_.size();
  set_deadline(one);
  epoll_set(EPOLL_CTL_ADD, socket, id, EPOLLIN);
}

void HttpServer::set_deadline(Connection& one) {
  const bool busy = one.reader.in_request() || unsent(one) > 0;
  const double seconds = busy ? options_.request_seconds : options_.idle_seconds;
  one.deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

void HttpServer::close(uint64_t id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  Connection& one = found->second;
  if (is_waiting(one)) one.asked->cancel();
  buffered_ -= one.counted + one.in_work;
  one.tls.reset();
  ::close(one.socket);
  const auto of_client = by_client_.find(one.client);  // none: it was not added to its end
  if (of_client != by_client_.end() && --of_client->second == 0) by_client_.erase(of_client);
  all_.erase(found);
  open_ = all_.size();
}

// Closing at once would reset a connection on which the rest of a refused request is still coming,
// and the client would never read why: it is heard out for a moment.
void HttpServer::end(uint64_t id, Connection& one) {
  if (!one.refused || one.ending || unsent(one) > 0) return close(id);
  ::shutdown(one.socket, SHUT_WR);
  one.ending = true;
  one.deadline = Clock::now() + std::chrono::seconds(2);
  watch(id, one);
}

// Those who work on them find their deadlines over; what they still answer is not sent.
void HttpServer::answer_refusal(uint64_t id, const Connection& one, int status,
                                const std::string& why) {
  if (options_.refused) options_.refused(status, why, one.address);
  answer(id, error_response(status, why));
}

void HttpServer::answer_late() {
  std::vector<uint64_t> late;
  for (const auto& [id, one] : all_) {
    if (is_waiting(one) && one.asked->has_passed()) late.push_back(id);
  }
  for (const uint64_t id : late) {
    all_.at(id).asked->cancel();
    answer_refusal(id, all_.at(id), 503, "the answer took longer than the request's timeout");
  }
}

void HttpServer::close_late() {
  std::vector<uint64_t> late;
  const auto now = Clock::now();
  for (const auto& [id, one] : all_) {
    if (!is_waiting(one) && now > one.deadline) late.push_back(id);
  }
  for (const uint64_t id : late) {
    Connection& one = all_.at(id);
    if (one.reader.in_request() && unsent(one) == 0) {
      const HttpResponse response = error_response(408, "the request did not come");
      [[maybe_unused]] const ssize_t sent =
          transmit(one, http_head(response, false, std::time(nullptr)) + response.body);
    }
    close(id);
  }
}

}  // namespace fcp
