// Threads for work that the event loop must not do, in the order in which it is given.
// Tested by tests/server/workers_test.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <sys/socket.h>

namespace fcp {

class Workers {
 public:
  explicit Workers(size_t threads);
  ~Workers() { end(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Work throws nothing but what memory that has run out throws, and is then given up.
  void put(std::function<void()> work);
  // Does what is waiting. What is put later is done at once, by the thread that puts it.
  void end();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

// How long the answer to a request is wanted: until its time has passed, or its client has gone.
// The connection and those who work on the answer share one; all functions may be called from any
// thread.
// Tested by tests/server/http_server_test.cc.

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::duration<double> time)
      : end_(
            (Clock::now() + std::chrono::duration_cast<Clock::duration>(time)).time_since_epoch()) {
  }

  // To an earlier end, from now on. A later one changes nothing.
  void shorten(std::chrono::duration<double> time) {
    const Clock::duration now = Clock::now().time_since_epoch(), left = end_.load() - now;
    if (time < left) end_ = now + std::chrono::duration_cast<Clock::duration>(time);
  }

  // Nobody waits any more.
  void cancel() { cancelled_ = true; }

  bool has_passed() const { return Clock::now().time_since_epoch() >= end_.load(); }
  bool is_over() const { return cancelled_ || has_passed(); }

 private:
  std::atomic<Clock::duration> end_;
  std::atomic<bool> cancelled_ = false;
};

// How many requests a client may make: a bucket per client that holds one second's worth, at least
// one, and is refilled all the time. Memory is bounded: beyond so many clients those whose buckets
// are full are forgotten, and if there are none, newcomers share one bucket.
// Tested by tests/server/workers_test.cc.

class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // rate: requests per second; 0: no limit.
  explicit RateLimit(double rate, size_t most_clients = 65'536);

  // Whether the client may make a request now, which then counts.
  bool allows(const std::string& client, Time now);
  size_t clients() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens = 0;
    Time filled{};
  };

  void fill(Bucket& bucket, Time now) const;
  void forget_full(Time now);

  double rate_;
  double most_;  // tokens
  size_t most_clients_;
  Time swept_{};
  std::unordered_map<std::string, Bucket> buckets_;
};

// Who a client is: its address, of IPv6 the first half, which is one customer's. "" where it is of
// another kind.
std::string client_of(const sockaddr_storage& address);
// The address as text, for logs: "127.0.0.1", "::1".
std::string address_text(const sockaddr_storage& address);

}  // namespace fcp
