// One connection of an HttpServer: bytes in, requests to the handler, answers, bytes out.
#include "apps/server/http_traffic.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "fcp/base/error.h"

#include "apps/server/http_message.h"
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

// A response as bytes.

namespace {

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return status < 500 ? "Error" : "Internal Server Error";
  }
}

}  // namespace

std::string http_date(std::time_t time) {
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[40];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                kMonths[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                parts.tm_min, parts.tm_sec);
  return text;
}

std::string http_head(const HttpResponse& response, bool keep_alive, std::time_t now) {
  std::string text = concat("HTTP/1.1 ", response.status, " ", reason_of(response.status),
                            "\r\nDate: ", http_date(now), "\r\nContent-Type: ", response.type,
                            "\r\nContent-Length: ", response.body.size(),
                            "\r\nConnection: ", keep_alive ? "keep-alive" : "close", "\r\n");
  for (const auto& [name, value] : response.headers) text += concat(name, ": ", value, "\r\n");
  return text + "\r\n";
}

HttpResponse json_response(const nlohmann::ordered_json& json) {
  return {.body = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

HttpResponse error_response(int status, const std::string& message) {
  HttpResponse response = json_response({{"error", message}});
  response.status = status;
  return response;
}

HttpResponse not_allowed(const std::string& methods) {
  HttpResponse response = error_response(405, concat("expected ", methods));
  response.headers["Allow"] = methods;
  return response;
}

std::optional<HttpResponse> foreign_page_response(const HttpRequest& request) {
  if (request.reads()) return std::nullopt;
  const std::string type = request.header("content-type");
  for (const char* form : {"text/plain", "multipart/form-data"}) {
    if (!type.starts_with(form)) continue;
    return error_response(415, concat("the Content-Type ", form,
                                      " is what web pages send; say "
                                      "application/json"));
  }
  if (request.header("sec-fetch-site") != "cross-site") return std::nullopt;
  return error_response(403, "a page of another site must not send this");
}

// Compressed bodies of requests, by zlib.

namespace {

class Inflater {
 public:
  Inflater() {
    constexpr int kEither = 32;  // gzip's header, or zlib's
    if (inflateInit2(&stream_, MAX_WBITS + kEither) != Z_OK) fail("zlib has no memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Status of the answer, or 0 where all is well.
  int unpack(std::string& packed, size_t most, std::string& out) {
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
    size_t size = 0;
    while (true) {
      if (size == out.size()) out.resize(std::min(most + 1, size + std::max<size_t>(size, 65536)));
      stream_.next_out = reinterpret_cast<Bytef*>(out.data()) + size;
      stream_.avail_out = static_cast<uInt>(out.size() - size);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      size = out.size() - stream_.avail_out;
      if (size > most) return 413;
      if (result == Z_STREAM_END) {
        out.resize(size);
        if (stream_.avail_in == 0) return 0;
        if (inflateReset(&stream_) != Z_OK) return 400;  // gzip may have several members
      } else if (result != Z_OK || (stream_.avail_in == 0 && stream_.avail_out != 0)) {
        return 400;
      }
    }
  }

 private:
  z_stream stream_{};
};

}  // namespace

std::optional<HttpResponse> unpack_body(HttpRequest& request, size_t most) {
  const std::string encoding = request.header("content-encoding");
  if (encoding.empty() || request.body.empty()) return std::nullopt;
  std::string out;
  const int status = Inflater().unpack(request.body, most, out);
  if (status == 413) {
    return error_response(413, concat("the body has more than ", most, " bytes when unpacked"));
  }
  if (status != 0) return error_response(status, concat("the body is not whole ", encoding));
  request.body = std::move(out);
  return std::nullopt;
}

}  // namespace fcp
