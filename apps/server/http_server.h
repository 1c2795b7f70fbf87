// A small HTTP server: one thread and epoll for all connections, so that idle and slow clients cost
// a few kilobytes and no thread. Requests are handed to a handler, which answers at once or later
// from any thread.
//
// Bounded: connections, in all and per client, bytes of a request, time for a request to come
// whole, time for its answer, time of an idle connection, requests per second of a client; a
// connection has one request in work at a time, and is not read while it waits. At the limit of
// connections the one that has been idle for the longest makes room; where none is idle, new ones
// are answered 503 and closed. A request whose answer is late is answered 503. A client that closes
// its side of the connection before it is answered has gone: the request's deadline is cancelled.
// Where memory runs out, the connection that needed it is answered 503 and closed.
//
// Tested by tests/server/http_server_test.cc and tests/cli/test_serve.py.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/server/http_message.h"
#include "apps/server/tls.h"
#include "apps/server/workers.h"

namespace fcp {

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;               // 0: any that is free
  size_t connections = 10'000;        // at most
  double request_seconds = 30;        // for a request to come whole, and for an answer to be taken
  double answer_seconds = 30;         // from a whole request to its answer
  double idle_seconds = 60;           // between requests
  size_t memory = size_t{512} << 20;  // bytes of requests on their way, all together
  size_t client_connections = 0;      // of one address at most; 0: no limit
  double client_rate = 0;             // requests per second of one address; 0: no limit
  std::string certificate{};          // with key: TLS, from files in PEM
  std::string key{};
  HttpLimits limits{};
  // Hears of what is answered without the handler: a message that is no request, too many of them,
  // and an answer that came too late. From the server's thread.
  std::function<void(int status, const std::string& why, const std::string& client)> refused{};
};

class HttpServer {
 public:
  using Respond = std::function<void(HttpResponse)>;  // once, from any thread, also later
  using Handler = std::function<void(HttpRequest, Respond)>;

  // Listens at once; an Error says why that cannot be.
  HttpServer(const HttpOptions& options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const { return port_; }
  size_t connections() const { return open_; }
  size_t in_work() const { return in_work_; }
  size_t limited() const { return limited_; }  // requests that were answered 429

  // Serves until drain() was called and all requests in work are answered. `tick` is called about
  // ten times a second, from this thread.
  void run(const std::function<void()>& tick);

  // Reads certificate and key again, for new connections. An Error changes nothing. From the thread
  // of run().
  void read_certificate();

  // No new connections; hears out requests that have begun to come, answers what is in work, then
  // ends. From any thread.
  void drain();

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    int socket = -1;
    HttpReader reader;
    std::string client{};
    std::string address{};              // of the client, as text
    std::unique_ptr<TlsSession> tls{};  // none: plain
    std::string out{};                  // the head of an answer, or all of a small one
    std::string body{};                 // the body of a large one
    size_t sent = 0;                    // of both
    std::shared_ptr<Deadline> asked{};  // of the request in work; none: not waiting for an answer
    uint64_t number = 0;                // of the last request
    size_t in_work = 0;                 // bytes of it
    size_t counted = 0;                 // bytes of its reader that are counted in buffered_
    bool head_only = false;             // as HEAD wants it
    bool keep_alive = true;
    bool refused = false;  // before all of it had come
    bool ending = false;   // answered; what still comes is not looked at
    Clock::time_point deadline{};
  };

  // Where answers from other threads come in; outlives the server for late ones.
  struct Answers;

  // What is done for one connection, whose memory is its own trouble.
  template <typename Work>
  void do_for(uint64_t id, const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      give_up(id);
    }
  }
  void give_up(uint64_t id);
  void accept_all();
  void add(uint64_t id, int socket, std::string client, std::string address);
  bool is_busy() const;
  void epoll_set(int what, int socket, uint64_t id, uint32_t events) const;
  bool has_room(const std::string& client);
  void refuse(int socket, const std::string& client, const std::string& why) const;
  void answer_refusal(uint64_t id, const Connection& one, int status, const std::string& why);
  void serve(uint64_t id, uint32_t events);
  bool read_from(uint64_t id, Connection& one);
  void go_on(uint64_t id, Connection& one, HttpReader::State state);
  void begin_work(uint64_t id, Connection& one, HttpRequest request);
  void answer(uint64_t id, HttpResponse response);
  static size_t unsent(const Connection& one) {
    return one.out.size() + one.body.size() - one.sent;
  }
  static bool is_waiting(const Connection& one) { return one.asked != nullptr; }
  void look_further(uint64_t id, Connection& one);
  void count_bytes(Connection& one);
  bool write_to(Connection& one);
  static ssize_t receive(Connection& one, char* bytes, size_t size);
  static ssize_t transmit(Connection& one, std::string_view bytes);
  void watch(uint64_t id, Connection& one);
  void close(uint64_t id);
  void end(uint64_t id, Connection& one);
  void take_answers();
  void close_late();
  void answer_late();
  void set_deadline(Connection& one);

  HttpOptions options_;
  Handler handler_;
  std::unique_ptr<TlsServer> tls_;
  RateLimit rate_;
  int listener_ = -1;
  int epoll_ = -1;
  uint16_t port_ = 0;
  std::shared_ptr<Answers> answers_;
  std::unordered_map<std::string, size_t> by_client_;  // connections
  std::unordered_map<uint64_t, Connection> all_;
  size_t buffered_ = 0;  // bytes of requests, in all readers and in work
  uint64_t next_ = 2;    // 0 and 1 are the listener and the answers
  std::atomic<size_t> open_ = 0;
  std::atomic<size_t> in_work_ = 0;
  std::atomic<size_t> limited_ = 0;
  std::atomic<bool> draining_ = false;
};

}  // namespace fcp
