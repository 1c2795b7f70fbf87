// How many requests a client may make: a bucket per client that holds one second's worth, at least
// one, and is refilled all the time. Memory is bounded: beyond so many clients those whose buckets
// are full are forgotten, and if there are none, newcomers share one bucket.
// Tested by tests/server/rate_limit_test.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include <sys/socket.h>

namespace fcp {

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
